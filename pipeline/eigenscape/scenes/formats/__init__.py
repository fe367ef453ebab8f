"""File formats for all readers: each is opened by its header, and read in windows."""
