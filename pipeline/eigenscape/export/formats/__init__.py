"""Output formats: each module one, which has the name of the module (see `eigenscape.export.format`)."""
