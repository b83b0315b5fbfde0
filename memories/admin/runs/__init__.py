"""Conversations and their extraction runs: what was read, what failed, what is parked."""
