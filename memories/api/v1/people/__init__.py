"""Version 1: /users."""
