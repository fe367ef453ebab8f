"""What the readers share: each format of files opened by its header, and read in windows."""
