"""The page about a run: one file that shows and explains the map, for people who were not there."""
