"""The Laplacian of a graph, and its products, on arrays in memory."""
