"""Version 1: /answer."""
