"""Scenes around other scenes: with a mask, other bands, several lines, fewer samples."""
