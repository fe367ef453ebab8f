"""The file of a job: its text, the keys that the command line sets, the files that it names, its schema."""
