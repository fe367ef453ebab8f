"""Features to k-nearest-neighbour lists, out of core."""
