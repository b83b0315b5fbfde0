"""The backend of the settings. Django checks each persistent connection once per request."""

import select

from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    """Checks the socket first: an idle connection has nothing to read unless the server has closed it.

    Django's own check, SELECT 1, is a whole round trip. It runs if there is something to read, or after an error.
    """

    def is_usable(self) -> bool:
        if self.connection is None or self.connection.closed:
            return False
        if self.errors_occurred:
            return super().is_usable()
        socket = select.poll()
        socket.register(self.connection.fileno(), select.POLLIN)
        return not socket.poll(0) or super().is_usable()
