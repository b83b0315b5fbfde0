"""Stores that the peers' own packages make, imported: `make import-suite`, which needs a network the first time."""
