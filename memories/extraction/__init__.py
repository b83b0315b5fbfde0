"""Extraction: one attempt at a session's due batch.

In: a session with a due batch. Out: the answer of the model or of the rules mode, handed to `reconcile`. It writes
ExtractionRun, and publishes `session.extracted` to the outbox of webhooks.
"""
