"""The backend that settings name: Django asks each kept connection once a request whether it still works."""

import select

from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    """Looks at the socket first: an idle connection has nothing to read until its server says goodbye or dies.

    Django's own question, SELECT 1, is a whole round trip. It is still asked when there is something to read, and after
    an error.
    """

    def is_usable(self) -> bool:
        if self.connection is None or self.connection.closed:
            return False
        if self.errors_occurred or _has_news(self.connection.fileno()):
            return super().is_usable()
        return True


def _has_news(descriptor: int) -> bool:
    look = select.poll()
    look.register(descriptor, select.POLLIN)
    return bool(look.poll(0))
