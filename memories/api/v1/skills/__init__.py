"""Version 1: /skills."""
