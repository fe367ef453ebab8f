"""Many jobs as one piece of work: their outcomes and their progress."""
