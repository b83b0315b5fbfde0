"""A session of the server for what needs one: advisory locks of a session, settings of a session, VACUUM.

Through a pooler each transaction has another connection of the server: such a lock would stay with one that nobody
holds any more, and such a setting would hold for strangers.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.transaction import TransactionManagementError
from django.db.utils import load_backend


@contextmanager
def own_session() -> Iterator[None]:
    """What this thread does in the block goes to the server itself. It changes nothing where no pooler is on the way.

    Errors: TransactionManagementError inside a transaction, which is in another connection.
    """
    if settings.DIRECT_DATABASE is None:
        yield
        return
    pooled = connections[DEFAULT_DB_ALIAS]
    if pooled.in_atomic_block:
        raise TransactionManagementError("A session of its own would not be in the transaction that is open.")
    # Nobody needs it meanwhile, and the pooler has few.
    pooled.close()
    given = {**connections.settings[DEFAULT_DB_ALIAS], **settings.DIRECT_DATABASE}
    direct = load_backend(given["ENGINE"]).DatabaseWrapper(given, DEFAULT_DB_ALIAS)
    connections[DEFAULT_DB_ALIAS] = direct
    try:
        yield
    finally:
        connections[DEFAULT_DB_ALIAS] = pooled
        direct.close()
