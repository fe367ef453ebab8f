"""Labels of a scene from rasters, vector files, arrays and tables."""
