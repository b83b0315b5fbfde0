"""Version 1: /search."""
