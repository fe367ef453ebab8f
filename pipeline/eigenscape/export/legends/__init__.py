"""Names and colours of classes: by their meaning, inside a GeoTIFF, as a style of QGIS."""
