"""Foundations without dask and zarr: files, the process, memory, registries."""
