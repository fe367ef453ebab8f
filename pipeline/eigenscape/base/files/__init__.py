"""Files on disk: written whole or not at all, mapped, checksummed, in CSV."""
