"""Wiring of the hub: environment, settings, URLs and the embedded PostgreSQL; no behaviour of its own."""
