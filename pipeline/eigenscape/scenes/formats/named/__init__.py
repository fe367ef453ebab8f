"""Arrays with named axes, as zarr stores and NetCDF files have them."""
