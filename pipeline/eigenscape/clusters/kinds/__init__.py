"""The kinds of cluster that come with the package: one class in one file, named as its kind."""
