"""What can go wrong with the embedded PostgreSQL."""


class EmbeddedPostgresError(Exception):
    """The embedded PostgreSQL cannot be used; the message says why and what to do."""
