"""The file of a job: its text, the keys that the command line sets in it, its schema for editors."""
