"""Version 1: /agents."""
