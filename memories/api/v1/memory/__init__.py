"""Version 1: /memory."""
