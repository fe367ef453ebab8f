"""Class numbers, confidences and eigenvectors to files that a GIS opens as they are."""
