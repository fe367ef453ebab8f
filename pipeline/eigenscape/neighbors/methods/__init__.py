"""Built-in methods of ``[neighbors]``: a module each, named after its method."""
