"""Rasters that GDAL opens."""
