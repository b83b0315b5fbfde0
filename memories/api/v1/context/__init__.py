"""Version 1: /context."""
