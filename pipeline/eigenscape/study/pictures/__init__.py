"""Pictures of a study: its plot, and panels of its variants."""
