"""The readers that come with the package: one class in one file, named as the reader."""
