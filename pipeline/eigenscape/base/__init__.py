"""Foundations without dask and zarr: memory, files, checksums, progress, signals."""
