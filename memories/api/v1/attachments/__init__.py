"""Version 1: /attachments."""
