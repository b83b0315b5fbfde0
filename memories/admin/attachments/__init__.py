"""Attachments: the list, a file with what was read of it, and its deletion."""
