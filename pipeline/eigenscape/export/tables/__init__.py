"""Tables of a run: scores, samples with their classes, pixels to label next."""
