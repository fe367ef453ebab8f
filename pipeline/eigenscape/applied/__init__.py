"""A finished run applied to another scene, out of sample."""
