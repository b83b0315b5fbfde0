"""Imports of uploaded files as their owners see them: uploaded, started, paused, gone on with and undone."""
