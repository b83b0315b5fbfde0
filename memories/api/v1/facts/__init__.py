"""Version 1: /facts."""
