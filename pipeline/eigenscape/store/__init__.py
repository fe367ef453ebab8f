"""Run directories: arrays, keys, atomic commits, checksums, locks."""
