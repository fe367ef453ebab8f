"""Places of the pixels of scenes in sensor geometry on a map: lookups, companions, several lines as one."""
