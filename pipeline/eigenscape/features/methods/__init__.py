"""Built-in methods of ``[features]``: a module each, named after its method."""
