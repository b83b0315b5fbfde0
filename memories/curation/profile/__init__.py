"""Verbs on the sections of a person's profile."""
