"""Tasks on threads and on Dask workers; lost and silent workers replaced."""
