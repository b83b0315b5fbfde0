"""Version 1: /management, for management keys: tenants, their keys, settings and webhooks. No memories are in it."""
