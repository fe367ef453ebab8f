"""A process at work: its cores, its progress, the signals that it gets."""
