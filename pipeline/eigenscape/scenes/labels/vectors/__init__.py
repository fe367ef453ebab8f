"""Labels in vector files: their layers, features, and the pixels that these label."""
