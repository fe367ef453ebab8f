"""Eigenpairs and labels to classes and scores."""
