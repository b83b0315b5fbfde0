"""Version 1: /diary."""
