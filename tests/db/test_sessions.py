"""Behind a pooler in transaction mode: what needs a session has one, and nothing else relies on one."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connection, transaction
from django.db.backends.signals import connection_created
from django.db.transaction import TransactionManagementError

from memories.db import statement_timeouts
from memories.db.sessions import own_session
from memories.embedding import spaces
from memories.models import Tenant
from memoryhub import settings as hub
from tests.database import elsewhere

POOLED = "postgresql://web:secret@pooler:6432/hub"
DIRECT = "postgresql://web:secret@server:5432/hub"
OWNER = "postgresql://owner:other@server:5432/hub"


def answer(statement: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return str(cursor.fetchone()[0])


@pytest.fixture
def pooled(transactional_db: None, settings: Any) -> Iterator[None]:
    """The connections of this process are as those to a pooler, but that they keep their sessions."""
    connection.close()
    given = dict(connection.settings_dict)
    settings.DIRECT_DATABASE = {**given, "DISABLE_SERVER_SIDE_CURSORS": False}
    connection.settings_dict.update(hub._database({}, is_pooled=True) | {name: given[name] for name in PLACE})
    before = list(connection_created.receivers)
    yield
    connection_created.receivers[:] = before
    connection_created.sender_receivers_cache.clear()
    connection.close()
    connection.settings_dict.update(given)
    connection.transaction_timeout = ""  # type: ignore[attr-defined]  # of our backend


PLACE = ("NAME", "USER", "PASSWORD", "HOST", "PORT")


def threshold() -> int | None:
    """After so many times the connection prepares a statement."""
    at: int | None = connection.connection.prepare_threshold
    return at


def test_a_session_lock_is_held_past_the_pooler_and_ends_with_the_block(pooled: None) -> None:
    pid = answer("SELECT pg_backend_pid()")
    assert threshold() is None
    with own_session():
        assert answer("SELECT pg_backend_pid()") != pid
        assert threshold() == 5
        assert spaces.try_lock(spaces.EMBEDDING)
        assert not elsewhere(lambda: spaces.try_lock(spaces.EMBEDDING))
        with transaction.atomic():
            Tenant.objects.create(slug="acme", created_at="2026-01-01T00:00:00Z")
    assert connection.connection is None
    assert Tenant.objects.filter(slug="acme").exists()
    assert threshold() is None
    assert elsewhere(lambda: spaces.try_lock(spaces.EMBEDDING))


def test_it_is_refused_in_a_transaction_and_nothing_without_a_pooler(pooled: None, settings: Any) -> None:
    with pytest.raises(TransactionManagementError), transaction.atomic(), own_session():
        pass
    assert connection.settings_dict["DISABLE_SERVER_SIDE_CURSORS"], "the pooled one is back"
    settings.DIRECT_DATABASE = None
    pid = answer("SELECT pg_backend_pid()")
    with transaction.atomic(), own_session():
        assert answer("SELECT pg_backend_pid()") == pid


def test_a_worker_sets_its_time_for_each_transaction(pooled: None) -> None:
    usual = answer("SHOW statement_timeout")
    statement_timeouts.as_a_worker()
    connection.close()
    assert answer("SHOW statement_timeout") == usual, "the next statement may be anybody's"
    with transaction.atomic():
        assert answer("SHOW statement_timeout") == "10min"
    assert answer("SHOW statement_timeout") == usual
    with own_session():
        assert answer("SHOW statement_timeout") == "10min"


def test_a_transaction_that_could_not_begin_leaves_no_connection_behind(pooled: None) -> None:
    connection.ensure_connection()
    connection.transaction_timeout = "no time"  # type: ignore[attr-defined]  # of our backend
    with pytest.raises(DatabaseError, match="statement_timeout"), transaction.atomic():
        pass
    connection.transaction_timeout = ""  # type: ignore[attr-defined]
    Tenant.objects.create(slug="acme", created_at="2026-01-01T00:00:00Z")
    assert elsewhere(Tenant.objects.count) == 1, "it was committed"


def roles_of(monkeypatch: pytest.MonkeyPatch, **given: str) -> list[Any]:
    """Of owner, web and worker, and these past the pooler: the host of each."""
    for name in ("DATABASE_URL", "MEMORYHUB_OWNER_URL", "MEMORYHUB_DIRECT_URL", "MEMORYHUB_POOLER"):
        monkeypatch.setenv(name, given.get(name, ""))
    return [at and (at["host"], at["user"]) for at in hub._roles()]


def test_which_address_is_whose(monkeypatch: pytest.MonkeyPatch) -> None:
    both = {"MEMORYHUB_POOLER": "Transaction", "DATABASE_URL": POOLED, "MEMORYHUB_DIRECT_URL": DIRECT}
    web, past = ("pooler", "web"), ("server", "web")
    assert roles_of(monkeypatch, DATABASE_URL=DIRECT) == [past, past, None]
    # No command goes through the pooler.
    assert roles_of(monkeypatch, **both) == [past, web, past]
    assert roles_of(monkeypatch, **both, MEMORYHUB_OWNER_URL=OWNER) == [("server", "owner"), web, past]
    for given, said in (
        ({"MEMORYHUB_POOLER": "transaction", "DATABASE_URL": POOLED}, "MEMORYHUB_DIRECT_URL"),
        ({"MEMORYHUB_POOLER": "transaction"}, "DATABASE_URL, which leads to the pooler"),
        ({**both, "MEMORYHUB_DIRECT_URL": OWNER}, "the same role"),
        ({"DATABASE_URL": DIRECT, "MEMORYHUB_DIRECT_URL": DIRECT}, "without MEMORYHUB_POOLER"),
        ({**both, "MEMORYHUB_POOLER": "session"}, "one of"),
    ):
        with pytest.raises(ImproperlyConfigured, match=said):
            roles_of(monkeypatch, **given)
