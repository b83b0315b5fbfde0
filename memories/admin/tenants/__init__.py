"""Tenants: their own numbers, retention, forgetting, roll back, off-boarding."""
