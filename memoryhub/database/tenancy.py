"""Cursors that send the tenancy with the statement: no round trip more.

The server forgets it at the end of the transaction, and a statement outside a transaction is one of its own. So nothing
stays on a connection for whoever uses it next, be it through a pooler.
"""

import uuid
from collections.abc import Generator
from contextlib import suppress
from typing import Any

from django.db.backends.postgresql import base
from psycopg import errors
from psycopg._preparing import Prepare
from psycopg.abc import Params, Query
from psycopg.generators import fetch_many, send
from psycopg.pq import ExecStatus, TransactionStatus

from memories.db import tenancy
from memories.db.tenancy import Policies, Tenancy

# What a cluster's coordinator passes on to the nodes is this statement alone, within a transaction.
_SET_ON_NODES = b"SET LOCAL memoryhub.tenants TO '%b'"
_SET = b"SELECT set_config('role', $1, true), set_config('memoryhub.tenants', $2, true)"
# What the server knows by the login: no role was taken, and no tenant named.
_LOGIN = (b"none", b"")

Values = tuple[bytes, bytes]


class SentTenancy:
    """What the server was told in the open transaction of a connection."""

    def __init__(self, role: str, *, on_nodes: bool = False) -> None:
        self._role, self.on_nodes = role, on_nodes
        # What the login must be able to take.
        self.others = [] if on_nodes else [self.role_of(wall) for wall in Policies if wall is not Policies.ONE]
        self.forget()

    def role_of(self, policies: Policies) -> str:
        return f"{self._role}{policies}"

    def forget(self) -> None:
        """A transaction begins, or has ended."""
        # None: unknown.
        self._last: Values | None = _LOGIN

    def doubt(self) -> None:
        """A part of the transaction was rolled back, and what was told in it."""
        self._last = None

    def lacking(self, connection: Any) -> Values | None:
        """What the server is to be told with the next statement; None: nothing."""
        if connection.pgconn.transaction_status == TransactionStatus.INERROR:
            # Only a roll back can follow, and that must not fail.
            return None
        wanted = self._wanted()
        return None if wanted == (_LOGIN if connection.autocommit else self._last) else wanted

    def note(self, values: Values, *, autocommit: bool) -> None:
        if not autocommit:
            self._last = values

    def _wanted(self) -> Values:
        wanted = tenancy.current()
        if wanted is None:
            return _LOGIN
        if self.on_nodes:
            return _LOGIN[0], _told(wanted)
        return self.role_of(wanted.policies).encode(), wanted.tenants.encode()


def _told(wanted: Tenancy) -> bytes:
    """The tenants as the one policy of a cluster reads them."""
    if wanted.policies is Policies.ALL:
        return b"*"
    ids = [str(uuid.UUID(one)) for one in wanted.tenants.strip("{}").split(",") if one]
    return f"{{{','.join(ids)}}}".encode() if ids else b""


# Any: most of what it needs of psycopg's cursors has no stubs.
_Plain: Any = base.ServerBindingCursor


class TenancyCursor(_Plain):  # type: ignore[misc]
    """Sends what the server lacks and the statement in one pipeline.

    psycopg has pipelines. To open one for each statement takes as long as the statement itself, so this does what they
    do without their queues.
    """

    # None: the backend's own statements, such as its check of a connection.
    sent: SentTenancy | None = None

    def _maybe_prepare_gen(self, pgq: Any, *, prepare: bool | None = None, binary: bool | None = None) -> Any:
        sent = self.sent
        lacking = sent.lacking(self._conn) if sent else None
        if sent is None or lacking is None or self._conn._pipeline:
            yield from super()._maybe_prepare_gen(pgq, prepare=prepare, binary=binary)
            return
        prep, name = self._get_prepared(pgq, prepare)
        # Until the server has answered.
        sent.doubt()
        told, *preparation, results, committed = yield from self._piped(sent, lacking, pgq, prep, name, binary=binary)
        if self._conn.autocommit and self._pgconn.transaction_status == TransactionStatus.INERROR:
            yield from self._conn._exec_command(b"ROLLBACK")
        try:
            self._require(told)
        except (errors.InvalidParameterValue, errors.InsufficientPrivilege) as error:
            # Nothing that the statement could help, and a migration mends it: as if the database were away.
            raise errors.OperationalError(tenancy.ROLES_LACKING) from error
        for several in preparation:
            self._require(several)
        key = self._conn._prepared.maybe_add_to_cache(pgq, prep, name)
        if key is not None:
            self._conn._prepared.validate(key, prep, name, results)
        self._check_results(results)
        self._require(committed)
        sent.note(lacking, autocommit=self._conn.autocommit)
        self._set_results(results)

    def _piped(
        self, sent: SentTenancy, lacking: Values, pgq: Any, prep: Prepare, name: bytes, *, binary: bool | None
    ) -> Generator[Any, Any, list[list[Any]]]:
        """The server's answers to what it is told, to the statement's preparation if it needs one, to the statement,
        and to the end of its transaction if it has one of its own."""
        connection = self._pgconn
        begins = sent.on_nodes and self._conn.autocommit
        connection.enter_pipeline_mode()
        try:
            if begins:
                connection.send_query_params(b"BEGIN", None)
            if sent.on_nodes:
                connection.send_query_params(_SET_ON_NODES % lacking[1], None)
            else:
                connection.send_query_params(_SET, lacking)
            if prep is Prepare.NO:
                self._execute_send(pgq, force_extended=True, binary=binary)
            else:
                if prep is Prepare.SHOULD:
                    self._send_prepare(name, pgq)
                self._send_query_prepared(name, pgq, binary=binary)
            if begins:
                connection.send_query_params(b"COMMIT", None)
            connection.pipeline_sync()
            yield from send(connection)
            answers: list[list[Any]] = []
            while True:
                results = yield from fetch_many(connection)
                if results and results[0].status == ExecStatus.PIPELINE_SYNC:
                    return answers[1:] if begins else [*answers, []]
                answers.append(results)
        finally:
            # A connection that broke cannot, and is not used again.
            with suppress(errors.OperationalError):
                connection.exit_pipeline_mode()

    def _require(self, results: list[Any]) -> None:
        for result in results:
            if result.status == ExecStatus.FATAL_ERROR:
                raise errors.error_from_result(result, encoding=self._encoding)

    def copy(self, statement: Query, params: Params | None = None, **named: Any) -> Any:
        """COPY cannot be in a pipeline. Errors: NotSupportedError outside a transaction."""
        self._send_before()
        return super().copy(statement, params, **named)

    def executemany(self, query: Query, params_seq: Any, **named: Any) -> None:
        """psycopg has a pipeline of its own for them. Errors: as copy()."""
        self._send_before()
        super().executemany(query, params_seq, **named)

    def _send_before(self) -> None:
        if self.sent is None or self.sent.lacking(self._conn) is None:
            return
        if self._conn.autocommit:
            raise errors.NotSupportedError(
                "With row level security this needs a transaction: the server is told first."
            )
        self.execute("SELECT")
