"""Decisions about review items and suggestions, one by one or in batches, and their undo."""
