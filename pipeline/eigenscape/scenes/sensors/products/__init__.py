"""The sensor products that are read: one class in one file, named as the product."""
