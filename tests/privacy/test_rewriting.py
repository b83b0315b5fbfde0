"""What was erased leaves the disk in the operator's window alone, and nobody is told so before it has."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import connection

from memories import tasks
from memories.models import CaseState, EndUser, PrivacyCase, TableRewrite, Turn
from memories.privacy import rewriting
from memories.privacy.rewriting import RewriteHours
from memoryhub import env
from tests import factories
from tests.database import held
from tests.each import each
from tests.factories import NOW
from tests.faults.workers import wait_until

TURNS = Turn._meta.db_table
MARKER = "canary-on-the-disk-7f3a"
LATE = datetime.now(UTC) + timedelta(hours=1)


def at(text: str, day: int = 3) -> datetime:
    hour, minute = map(int, text.split(":"))
    return datetime(2026, 11, day, hour, minute, tzinfo=UTC)


class TestTheWindow:
    @each(
        ("window", "now", "end"),
        [
            ("02:00-04:30", at("01:59"), None),
            ("02:00-04:30", at("02:00"), at("04:30")),
            ("02:00-04:30", at("04:29"), at("04:30")),
            ("02:00-04:30", at("04:30"), None),
            ("22:00-06:00", at("23:00"), at("06:00", 4)),
            ("22:00-06:00", at("05:59"), at("06:00")),
            ("22:00-06:00", at("06:00"), None),
            ("03:00-03:00", at("02:59"), at("03:00")),
        ],
    )
    def test_when_it_ends(self, window: str, now: datetime, end: datetime | None) -> None:
        assert RewriteHours.of(window).end_of(now) == end

    @pytest.mark.parametrize("text", ["", "02:00", "2-4", "25:00-04:00", "02:00-04:60", "02:00–04:00"])
    def test_what_is_none(self, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(ValueError):  # noqa: PT011  (of the standard library)
            RewriteHours.of(text)
        monkeypatch.setenv("MEMORYHUB_REWRITE_WINDOW", text)
        if text:
            with pytest.raises(ImproperlyConfigured, match="02:00-04:30"):
                env.window("MEMORYHUB_REWRITE_WINDOW")
        else:
            assert env.window("MEMORYHUB_REWRITE_WINDOW") == ""


@pytest.fixture
def autovacuum_stays_away(transactional_db: None) -> Iterator[None]:
    """It cuts off the end of an emptied table, where a test on a busy machine looks for what was deleted; and a table
    that it is at work on is not rewritten."""
    tables = sorted(rewriting._tables_of({Turn._meta.label: 1}))
    with connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = false, toast.autovacuum_enabled = false)")
    yield
    with connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f"ALTER TABLE {table} RESET (autovacuum_enabled, toast.autovacuum_enabled)")


def marked() -> EndUser:
    person = factories.end_user()
    factories.session(person, [("user", f"{MARKER} {number}") for number in range(50)])
    return person


def erased(person: EndUser, **over: Any) -> PrivacyCase:
    """As after an erasure: the rows are gone, and the case counts them; by the database's clock."""
    case = factories.privacy_case(person, state=CaseState.COMPLETED, counts={"memories.Turn": 50, "files": 1})
    person.delete()
    # Not before: whoever began meanwhile may still see the rows.
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        [now] = cursor.fetchone()
    PrivacyCase.objects.filter(pk=case.pk).update(**{"started_at": now, "completed_at": now, **over})
    case.refresh_from_db()
    return case


def erased_long_ago(person: EndUser, **over: Any) -> PrivacyCase:
    """As erased(), once no transaction of before it is open; other tests on this server and autovacuum have some."""
    case = erased(person, **over)
    wait_until(nobody_older, within=120.0)
    return case


def nobody_older() -> bool:
    """Whether all transactions of before the erasure are over: until then they hold a rewrite back."""
    with connection.cursor() as cursor:
        cursor.execute(rewriting._CLOCK)
        _, since = cursor.fetchone()
    return bool(since > rewriting._changed().get(TURNS, NOW))


def on_the_disk(table: str) -> bool:
    """Whether the marker is in the files of the table, of its indexes or of what is stored beside it."""
    with connection.cursor() as cursor:
        cursor.execute("CHECKPOINT")
        cursor.execute("SHOW data_directory")
        [folder] = cursor.fetchone()
        cursor.execute(
            "SELECT pg_relation_filepath(c.oid) FROM pg_class c WHERE c.oid = %(table)s::regclass"
            " OR c.oid = (SELECT reltoastrelid FROM pg_class WHERE oid = %(table)s::regclass)"
            " OR c.oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = %(table)s::regclass)",
            {"table": table},
        )
        paths = [Path(folder) / path for (path,) in cursor.fetchall()]
    return any(MARKER.encode() in path.read_bytes() for path in paths)


def in_any_file() -> bool:
    """Whether it is in any file of the database at all, the log of changes aside."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW data_directory")
        [folder] = cursor.fetchone()
        cursor.execute("SELECT oid FROM pg_database WHERE datname = current_database()")
        [oid] = cursor.fetchone()
    found = (Path(folder) / "base" / str(oid)).iterdir()
    return any(MARKER.encode() in path.read_bytes() for path in found if path.is_file())


@pytest.mark.alone
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("autovacuum_stays_away")
class TestTheDisk:
    def test_what_was_deleted_is_there_until_the_rewrite(self) -> None:
        case = erased_long_ago(marked())
        assert not Turn.objects.exists()
        assert on_the_disk(TURNS)
        assert rewriting.horizon(case).rewritten_at is None
        told = rewriting.rewrite(until=LATE)
        assert TURNS in told.done
        assert told.left == {}
        assert not on_the_disk(TURNS)
        assert not in_any_file()
        last = TableRewrite.objects.latest("rewritten_at").rewritten_at
        assert rewriting.horizon(case).rewritten_at == last

    def test_once_for_each_erasure(self) -> None:
        erased_long_ago(marked())
        first = rewriting.rewrite(until=LATE)
        assert {TURNS, "memories_privacycase", "memories_enduser", "memories_fact"} == set(first.done)
        assert rewriting.due_tables() == []
        erased_long_ago(factories.end_user(), counts={})
        assert TURNS not in rewriting.due_tables()
        assert "memories_enduser" in rewriting.due_tables()

    def test_a_transaction_that_may_see_it_keeps_it(self) -> None:
        person = marked()

        def look() -> None:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                cursor.execute("SELECT 1")

        with held(look):
            erased(person)
            told = rewriting.rewrite(until=LATE)
            assert (told.done, set(told.left.values())) == ([], {rewriting.SEEN})
        assert on_the_disk(TURNS)
        wait_until(nobody_older, within=120.0)
        assert rewriting.rewrite(until=LATE).left == {}

    def test_who_writes_in_another_database_of_the_server_keeps_it(self) -> None:
        """VACUUM goes by the oldest transaction that writes anywhere."""
        person = marked()
        parameters = connection.get_connection_params() | {"dbname": "postgres", "cursor_factory": None}
        with psycopg.connect(**parameters) as elsewhere:
            elsewhere.execute("SELECT pg_current_xact_id()")
            erased(person)
            told = rewriting.rewrite(until=LATE)
            assert (told.done, set(told.left.values())) == ([], {rewriting.SEEN})
        wait_until(nobody_older, within=120.0)
        assert rewriting.rewrite(until=LATE).left == {}
        assert not on_the_disk(TURNS)

    def test_a_table_in_use_is_left(self) -> None:
        erased_long_ago(marked())

        def use() -> None:
            with connection.cursor() as cursor:
                cursor.execute(f"LOCK TABLE {TURNS} IN ACCESS SHARE MODE")

        with held(use):
            told = rewriting.rewrite(until=LATE)
        assert told.left == {TURNS: rewriting.BUSY}
        with connection.cursor() as cursor:
            cursor.execute("SHOW lock_timeout")
            assert cursor.fetchone() == ("0",)

    @pytest.mark.parametrize("state", [CaseState.RUNNING, CaseState.VERIFYING])
    def test_not_while_an_erasure_runs(self, state: str) -> None:
        erased_long_ago(marked())
        running = factories.privacy_case(factories.end_user(), state=state)
        assert set(rewriting.rewrite(until=LATE).left.values()) == {rewriting.ERASING}
        running.delete()
        assert rewriting.rewrite(until=LATE).left == {}

    def test_two_at_once(self) -> None:
        erased_long_ago(marked())

        def hold() -> None:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", [rewriting.REWRITE_LOCK])

        with held(hold):
            assert set(rewriting.rewrite(until=LATE).left.values()) == {rewriting.BUSY}
        assert rewriting.rewrite(until=LATE).left == {}

    def test_at_the_windows_end_it_is_called_off(self) -> None:
        erased_long_ago(marked())
        assert set(rewriting.rewrite(until=NOW).left.values()) == {rewriting.LONG}
        assert set(rewriting.rewrite(until=LATE, most_bytes=0).left.values()) == {rewriting.LONG}
        assert on_the_disk(TURNS)

    def test_an_erasure_that_was_run_with_an_older_time(self) -> None:
        """As by a command that waited for a worker: it began after the rewrite."""
        rewriting.rewrite(until=LATE)
        erased_long_ago(marked(), completed_at=NOW)
        assert TURNS in rewriting.due_tables()
        assert rewriting.rewrite(until=LATE).left == {}
        erased_long_ago(marked(), completed_at=NOW)
        assert TURNS in rewriting.due_tables()

    def test_an_erasure_that_is_not_over_makes_nothing_due(self) -> None:
        erased(marked(), state=CaseState.FAILED, completed_at=None)
        assert rewriting.due_tables() == []

    def test_the_task_keeps_to_the_window(self, settings: Any) -> None:
        erased_long_ago(marked())
        for window, count in [("", 0), (_around(hours=2), 0), (_around(hours=0), 4)]:
            settings.MEMORYHUB_REWRITE_WINDOW = window
            assert tasks.rewrite_tables() == count

    def test_it_is_woken_only_with_something_to_do(self, settings: Any) -> None:
        settings.MEMORYHUB_REWRITE_WINDOW = "02:00-04:00"
        assert not rewriting.is_due(now=at("03:00"))
        erased_long_ago(marked())
        assert rewriting.is_due(now=at("03:00"))
        assert not rewriting.is_due(now=at("05:00"))

    def test_the_command(self, settings: Any, capsys: pytest.CaptureFixture[str]) -> None:
        erased_long_ago(marked())
        with pytest.raises(CommandError, match="Say when"):
            call_command("rewrite_tables")
        with pytest.raises(CommandError, match="closed"):
            call_command("rewrite_tables", "--window", _around(hours=2))
        assert on_the_disk(TURNS)
        call_command("rewrite_tables", "--window", _around(hours=0))
        assert f"{TURNS}: rewritten" in capsys.readouterr().out
        assert not on_the_disk(TURNS)
        call_command("rewrite_tables", "--now")
        assert "0 tables rewritten" in capsys.readouterr().out


def _around(*, hours: int) -> str:
    """A window of an hour on both sides of so many hours from now."""
    middle = datetime.now(UTC) + timedelta(hours=hours)
    edges = [middle - timedelta(hours=1), middle + timedelta(hours=1)]
    return "-".join(f"{edge:%H:%M}" for edge in edges)
