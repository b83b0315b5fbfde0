"""Version 1: /content-policy."""
