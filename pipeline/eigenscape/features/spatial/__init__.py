"""Features filtered in the grid of their scene: bilateral and guided filters, morphological profiles."""
