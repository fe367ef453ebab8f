"""Places of labelled samples, on arrays in memory."""
