"""The text that the command line prints: light modules, which take what is to be shown."""
