"""Samples to features: random projection, principal components, standardisation."""
