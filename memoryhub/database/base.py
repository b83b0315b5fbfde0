"""The backend of the settings. Django checks each persistent connection once per request."""

import select
from functools import cached_property
from typing import Any

from django.db import Error, OperationalError
from django.db.backends.postgresql import base
from django.db.utils import DatabaseErrorWrapper
from psycopg import _queries
from psycopg.errors import ReadOnlySqlTransaction

from memoryhub.database.schema import SchemaEditor
from memoryhub.database.tenancy import SentTenancy, TenancyCursor

# psycopg remembers how a statement reads up to 4,096 bytes, and takes a longer one apart each time it runs. The longest
# of ours that goes before the answer to an agent has 6,300.
_queries.MAX_CACHED_STATEMENT_LENGTH = 16_384


class _Errors(DatabaseErrorWrapper):
    """A server that takes no writes, as a standby and one that recovers, is one that cannot answer now. Another may be
    at its address later: the connection is not used again."""

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        if isinstance(exc_value, ReadOnlySqlTransaction):
            self.wrapper.close_at = 0  # type: ignore[attr-defined]  # the stubs lack it
            raise OperationalError(*exc_value.args).with_traceback(traceback) from exc_value
        super().__exit__(exc_type, exc_value, traceback)


class DatabaseWrapper(base.DatabaseWrapper):
    """Checks the socket first: an idle connection has nothing to read unless the server has closed it.

    Django's own check, SELECT 1, is a whole round trip. It runs if there is something to read, or after an error.
    """

    # The statement_timeout that each transaction sets for itself; "": that of the session.
    transaction_timeout = ""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if self.settings_dict.get("DISTRIBUTED"):
            self.ops.compiler_module = "memoryhub.database.distributed"
            self.SchemaEditorClass = SchemaEditor

    @cached_property
    def wrap_database_errors(self) -> DatabaseErrorWrapper:
        return _Errors(self)

    @cached_property
    def sent(self) -> SentTenancy | None:
        """The tenancy that the server knows. None: row level security is off."""
        role = self.settings_dict.get("TENANCY_ROLE")
        return SentTenancy(role, on_nodes=bool(self.settings_dict.get("DISTRIBUTED"))) if role else None

    def create_cursor(self, name: str | None = None) -> Any:
        sent = self.sent
        if sent is None:
            return super().create_cursor(name)
        lacking = sent.lacking(self.connection)
        if name and not (lacking and self.connection.autocommit):
            if lacking:
                with self.create_cursor() as cursor:
                    cursor.execute("SELECT")
            return super().create_cursor(name)
        # Of a cursor on the server, outside a transaction, the server could not be told: its rows come all at once.
        self.connection.cursor_factory = TenancyCursor
        cursor = super().create_cursor()
        cursor.sent = sent
        return cursor

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

    def _savepoint_rollback(self, sid: str) -> None:
        super()._savepoint_rollback(sid)  # type: ignore[misc]  # the stubs lack it
        if self.sent:
            self.sent.doubt()

    def _commit(self) -> None:
        super()._commit()  # type: ignore[misc]  # the stubs lack it
        if self.sent:
            self.sent.forget()

    def _rollback(self) -> None:
        super()._rollback()  # type: ignore[misc]  # the stubs lack it
        if self.sent:
            self.sent.forget()

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        if self.sent:
            self.sent.forget()
        return super().get_new_connection(conn_params)

    def _set_autocommit(self, autocommit: bool) -> None:
        if self.sent:
            self.sent.forget()
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
