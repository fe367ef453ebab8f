"""The commands of the command line, and the arguments that they share."""
