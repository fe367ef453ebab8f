"""Classes as polygons."""
