"""Built-in methods of ``[learn]``: a module each, named after its method."""
