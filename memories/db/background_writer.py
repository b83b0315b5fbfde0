"""A thread that writes what its process noted, because reads do not wait for writes."""

import logging
import threading

from django.db import DatabaseError, InterfaceError, connection

from memories.db import tenancy

logger = logging.getLogger(__name__)


class BackgroundWriter(threading.Thread):
    """Writes every few seconds; end() writes for the last time. `name` is in the log when the database fails."""

    def __init__(self, name: str, *, seconds: float) -> None:
        super().__init__(name=name, daemon=True)
        self._seconds = seconds
        self._ended = threading.Event()

    def write(self) -> None:
        """Write what was noted; what could not be written stays noted. Errors: DatabaseError, InterfaceError."""
        raise NotImplementedError

    def run(self) -> None:
        while not self._ended.wait(self._seconds):
            self.once()

    def once(self) -> None:
        """One write. In an outage of the database the next one tries again."""
        try:
            # It writes for all tenants whom the process has served.
            with tenancy.everything():
                self.write()
        except (DatabaseError, InterfaceError) as error:
            logger.warning("%s: waits for the database: %s", self.name, type(error).__name__)
        finally:
            # This thread needs it too seldom to keep a connection.
            connection.close()

    def end(self) -> None:
        self._ended.set()
        self.once()
