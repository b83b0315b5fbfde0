"""What tests of races and query budgets need: threads with connections of their own, and the statements of a block."""

import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from django.conf import settings
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from memories.db import tenancy
from memories.db.tenancy import Policies
from memories.management import policies
from memoryhub.database.tenancy import SentTenancy

T = TypeVar("T")
PATIENCE = 30.0
_FRAMES = ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE")


def at_once(count: int, work: Callable[[int], T]) -> list[T | Exception]:
    """What `work(0)` … `work(count - 1)` returned or raised, each in a thread of its own, started together."""
    gate = threading.Barrier(count)

    def run(index: int) -> T | Exception:
        try:
            connection.ensure_connection()
            gate.wait(PATIENCE)
            return work(index)
        except Exception as error:  # noqa: BLE001  (handed to the test, which says what it expects)
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def runtime_role() -> tuple[str, str]:
    """Name and password of the role that web and worker have."""
    role: tuple[str, str] | None = settings.RUNTIME_ROLE
    assert role
    return role


@contextmanager
def walled(role: str | None = None) -> Iterator[None]:
    """This connection tells the server the tenancy of its statements, as those of web and worker with row security."""
    with _sending(SentTenancy(role or runtime_role()[0], on_nodes=connection.settings_dict["DISTRIBUTED"])):
        yield


@contextmanager
def unwalled() -> Iterator[None]:
    """This connection tells the server no tenancy."""
    with _sending(None):
        yield


@contextmanager
def _sending(sent: SentTenancy | None) -> Iterator[None]:
    before = connection.sent  # type: ignore[attr-defined]  # of our backend
    connection.sent = sent  # type: ignore[attr-defined]
    try:
        yield
    finally:
        connection.sent = before  # type: ignore[attr-defined]


@contextmanager
def enforced() -> Iterator[None]:
    """The test's database is behind policies, for everybody but the owner, in a test with transactions of its own."""
    role, _ = runtime_role()
    before = policies.current_policies()["memories_fact"].is_enforced
    policies.give(role, enforced=True)
    # Of connections that other threads make.
    said = connection.settings_dict.get("TENANCY_ROLE", "")
    connection.settings_dict["TENANCY_ROLE"] = role
    try:
        with walled():
            yield
    finally:
        connection.settings_dict["TENANCY_ROLE"] = said
        if not before:
            policies.lift()


_OF_A_TENANT = re.compile(r"""(?<=[( ])(?:"?\w+"?\.)?"?tenant_(?:id|uuid)"? = (%s|%\(\w+\)s)(?:::uuid)?(?=[) \n]|$)""")


@contextmanager
def forgetting_tenants() -> Iterator[list[str]]:
    """Statements that are said to be for one tenant forget to name it in their conditions; yields those that did.

    Of what was written by hand and by Django alike. The tenant that a row gets is no condition.
    """
    forgetful: list[str] = []

    def forget(execute: Callable[..., Any], statement: Any, params: Any, many: bool, context: Any) -> Any:
        said = tenancy.current()
        if isinstance(statement, str) and said is not None and said.policies is Policies.ONE:
            head, where, conditions = statement.partition("WHERE")
            # What is left out has a value, which has to stand somewhere.
            shorter = head + where + _OF_A_TENANT.sub(r"\1::text IS NOT NULL", conditions)
            if shorter != statement:
                forgetful.append(shorter)
                statement = shorter
        return execute(statement, params, many, context)

    with connection.execute_wrapper(forget):
        yield forgetful


@contextmanager
def reading_only() -> Iterator[None]:
    """Whatever writes in this block fails: PostgreSQL sees to it."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL transaction_read_only = on")
        yield
        # Or what comes after it in the test's transaction could not write either.
        transaction.set_rollback(True)


@contextmanager
def undone() -> Iterator[None]:
    """What the block writes is taken back: of one world many calls can be tried, each as if it were the first."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def elsewhere(work: Callable[[], T]) -> T:
    """What `work()` returns or raises on another connection."""
    [outcome] = at_once(1, lambda _: work())
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


class Gate:
    """Stops work on another connection where it calls `stop`, until somebody else has done something."""

    def __init__(self) -> None:
        self._reached, self._opened = threading.Event(), threading.Event()

    def stop(self) -> None:
        self._reached.set()
        assert self._opened.wait(PATIENCE), "nobody opened the gate"

    def meanwhile(self, work: Callable[[], T], act: Callable[[], Any]) -> T:
        """What `work()` returns or raises, with `act()` done here while it stands at the gate."""
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(elsewhere, work)
            # Ended already, it never comes to the gate: no use waiting for it.
            future.add_done_callback(lambda _: self._reached.set())
            try:
                assert self._reached.wait(PATIENCE)
                assert not future.done(), future.exception() or "it did not come to the gate"
                act()
            finally:
                self._opened.set()
            return future.result(PATIENCE)


@contextmanager
def held(work: Callable[[], T]) -> Iterator[T]:
    """Run `work()` on another connection and keep its transaction open for as long as the block lasts."""
    begun, enough = threading.Event(), threading.Event()
    results: list[T] = []

    def run() -> None:
        with transaction.atomic():
            results.append(work())
            begun.set()
            assert enough.wait(PATIENCE)
        with connection.cursor() as cursor:
            # PostgreSQL lets go of a session's locks some time after the connection is closed, and the test goes on.
            cursor.execute("SELECT pg_advisory_unlock_all()")

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(elsewhere, run)
        # Ended already, it has failed: no use waiting for it to begin.
        future.add_done_callback(lambda _: begun.set())
        try:
            assert begun.wait(PATIENCE)
            assert results, future.exception()
            yield results[0]
        finally:
            enough.set()
            future.result(PATIENCE)


def blocked(work: Callable[[], T]) -> Future[T]:
    """Start `work()` on another connection and return once it waits for a lock; the test lets the lock go."""
    pool = ThreadPoolExecutor(1)
    future = pool.submit(elsewhere, work)
    pool.shutdown(wait=False)
    patient_until = time.monotonic() + PATIENCE
    while not (future.done() or _somebody_waits()):
        assert time.monotonic() < patient_until
        time.sleep(0.005)
    assert not future.done(), "nothing stood in its way"
    return future


def _somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
        return cursor.fetchone() is not None


@contextmanager
def impatient() -> Iterator[None]:
    """Statements of this connection fail after five seconds instead of waiting for a lock for ever."""
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '5s'")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout")


def statements(work: Callable[[], Any]) -> list[str]:
    """The SQL of `work()`, without what frames its transactions."""
    with CaptureQueriesContext(connection) as captured:
        work()
    return [query["sql"] for query in captured.captured_queries if not query["sql"].startswith(_FRAMES)]
