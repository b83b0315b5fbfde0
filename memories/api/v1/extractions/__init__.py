"""Version 1: /extractions."""
