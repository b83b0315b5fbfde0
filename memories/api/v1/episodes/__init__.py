"""Version 1: /episodes."""
