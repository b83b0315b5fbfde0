"""Version 1: /groups."""
