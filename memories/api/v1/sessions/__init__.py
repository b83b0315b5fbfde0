"""Version 1: /sessions."""
