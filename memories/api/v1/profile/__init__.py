"""Version 1: /profile."""
