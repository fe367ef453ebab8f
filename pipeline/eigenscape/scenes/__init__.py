"""Any source to samples: rasters, arrays, registered data sets, their masks and their labels."""
