"""Where the pixels of scenes in sensor geometry are on a map: lookups, companions, several lines as one."""
