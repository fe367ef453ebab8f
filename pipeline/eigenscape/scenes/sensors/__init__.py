"""Sensor products as they are downloaded: one class in one file of `products` for each."""
