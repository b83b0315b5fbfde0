"""Retrieval measured on real conversations that are not part of this repository: `make eval DATA=folder`."""
