"""Labelled samples: training sets, splits, priors, zones."""
