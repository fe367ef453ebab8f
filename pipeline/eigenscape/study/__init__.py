"""Studies: many variants of one job over shared stages, their table, their plot, their page."""
