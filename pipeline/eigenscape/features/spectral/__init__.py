"""Preparation of spectra before features are computed: ``[features.spectral]``."""
