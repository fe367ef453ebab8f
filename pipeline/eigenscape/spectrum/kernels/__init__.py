"""Products, filters and dense algebra on arrays in memory."""
