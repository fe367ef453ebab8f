"""Figures and sentences of a report, section by section: numbers of the manifest in, texts out."""
