"""Tenants and the people who are remembered."""
