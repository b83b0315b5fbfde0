"""Webhooks of tenants: the list, the page of one with its deliveries, and the verbs on them."""
