"""Pictures of a run: the quick-look of a scene, the samples of a table."""
