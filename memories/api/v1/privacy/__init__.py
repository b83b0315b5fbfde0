"""Version 1: /privacy/requests."""
