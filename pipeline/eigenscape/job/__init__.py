"""Job files: their tables, how they are read, what is said when one is wrong."""
