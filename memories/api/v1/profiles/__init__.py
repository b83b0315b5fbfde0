"""Version 1: /profiles."""
