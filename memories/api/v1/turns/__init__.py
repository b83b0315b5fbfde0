"""Version 1: /turns."""
