"""Webhooks: what the outbox holds is signed and sent to the tenant's endpoints, again and again for three days.

In: rows of `WebhookDelivery` that outbox.py wrote. Out: POST requests. Writes `WebhookDelivery` and `WebhookEndpoint`.
"""
