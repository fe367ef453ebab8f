"""What is done to every spectrum before its features are computed: ``[features.spectral]``."""
