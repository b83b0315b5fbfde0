"""Imports of uploaded files over the API."""
