"""Version 1: /trajectories."""
