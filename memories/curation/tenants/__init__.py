"""Verbs on tenants: settings and off-boarding."""
