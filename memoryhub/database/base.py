"""The backend of the settings. Django checks each persistent connection once per request."""

import select

from django.db import Error
from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    """Checks the socket first: an idle connection has nothing to read unless the server has closed it.

    Django's own check, SELECT 1, is a whole round trip. It runs if there is something to read, or after an error.
    """

    # The statement_timeout that each transaction sets for itself; "": that of the session.
    transaction_timeout = ""

    @property
    def is_pooled(self) -> bool:
        """Whether a pooler gives each transaction any of its connections: what is set for a session is lost."""
        return bool(self.settings_dict["DISABLE_SERVER_SIDE_CURSORS"])

    def is_usable(self) -> bool:
        if self.connection is None or self.connection.closed:
            return False
        if self.errors_occurred:
            return super().is_usable()
        socket = select.poll()
        socket.register(self.connection.fileno(), select.POLLIN)
        return not socket.poll(0) or super().is_usable()

    def _set_autocommit(self, autocommit: bool) -> None:
        super()._set_autocommit(autocommit)  # type: ignore[misc]  # the stubs lack it
        if autocommit or not self.transaction_timeout:
            return
        try:
            with self.wrap_database_errors, self.connection.cursor() as cursor:
                cursor.execute("SELECT set_config('statement_timeout', %s, true)", [self.transaction_timeout])
        except Error:
            # Django takes it for a connection without a transaction.
            self.close()
            raise
