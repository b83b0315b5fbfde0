"""Version 1: /files."""
