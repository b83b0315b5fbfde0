"""The bytes on the disk: a deleted row's text stays in the file of its table until that is rewritten.

A rewrite (VACUUM FULL) locks its table for everybody, so it is off by default and happens only in hours that the
operator names. What a transaction that is still open may see stays: such tables are left to another time.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db import OperationalError, ProgrammingError, connection
from django.db.models.functions import Greatest
from django_q.tasks import async_task
from psycopg.errors import LockNotAvailable

from memories.models import CaseState, CaseType, EndUser, Fact, PrivacyCase, TableRewrite

TASK = "memories.tasks.rewrite_tables"
# Whoever waits for the table's lock keeps others waiting behind.
LOCK_MILLISECONDS = 200
TRIES = 5
# What a slow disk does. A task that takes longer is ended, and would lock its table in vain.
BYTES_A_SECOND = 10_000_000
# Any number, the same for all: one process at a time rewrites.
REWRITE_LOCK = 6_110_307
RUNNING = (CaseState.RUNNING, CaseState.VERIFYING)
# Changed by every erasure, though the store counts no row of its own.
ALWAYS = (PrivacyCase, EndUser, Fact)
BUSY, SEEN, ERASING, LONG = "busy", "seen", "erasing", "long"
# Since when the oldest transaction that may see deleted rows runs; a replication slot may for ever.
_CLOCK = """
    SELECT clock_timestamp(), least(
        clock_timestamp(),
        (SELECT min(xact_start) FROM pg_stat_activity
            WHERE (datname = current_database() OR datname IS NULL) AND pid <> pg_backend_pid()
                AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)),
        (SELECT min(prepared) FROM pg_prepared_xacts WHERE database = current_database()),
        (SELECT 'epoch'::timestamptz FROM pg_replication_slots WHERE xmin IS NOT NULL LIMIT 1)
    )
"""


@dataclass(frozen=True)
class Window:
    """Hours of each day, in UTC; over midnight when it ends before it begins."""

    begins: time
    ends: time

    @classmethod
    def of(cls, text: str) -> "Window":
        """As written: 02:00-04:30. Errors: ValueError."""
        begins, _, ends = text.partition("-")
        return cls(time.fromisoformat(begins), time.fromisoformat(ends))

    def end_of(self, now: datetime) -> datetime | None:
        """When the window ends that is open now; None when none is."""
        for day in (now.date() - timedelta(days=1), now.date()):
            begins = datetime.combine(day, self.begins, now.tzinfo)
            ends = datetime.combine(day, self.ends, now.tzinfo)
            ends += timedelta(days=1) if ends <= begins else timedelta()
            if begins <= now < ends:
                return ends
        return None


@dataclass(frozen=True)
class Rewritten:
    """Tables that were rewritten, and those that were not, with the reason.

    Reasons: `busy` (somebody works on it), `seen` (an old transaction may see what was deleted), `erasing` (an erasure
    is under way), `long` (there is not enough time).
    """

    done: list[str]
    left: dict[str, str]


@dataclass(frozen=True)
class Horizon:
    """How long deleted rows are on the disk: the hours in UTC in which tables are rewritten, "" for never; and when the
    last table of a case was, None before."""

    window: str
    rewritten_at: datetime | None


def horizon(case: PrivacyCase) -> Horizon:
    """How long what a completed case erased is in the files of its tables."""
    tables = _tables_of(case.counts)
    moments = TableRewrite.objects.filter(table__in=tables).order_by("rewritten_at")
    found = list(moments.values_list("rewritten_at", flat=True))
    ended = max((moment for moment in (case.started_at, case.completed_at) if moment), default=None)
    is_over = ended and len(found) == len(tables) and found[0] > ended
    return Horizon(settings.MEMORYHUB_REWRITE_WINDOW, found[-1] if is_over else None)


def is_due(*, now: datetime) -> bool:
    """Whether the window of the settings is open and there is something to rewrite."""
    window = settings.MEMORYHUB_REWRITE_WINDOW
    return bool(window and Window.of(window).end_of(now) and due_tables())


def wake() -> None:
    """Have a worker rewrite what is due."""
    async_task(TASK)


def due_tables() -> list[str]:
    """Those that an erasure changed since they were last rewritten."""
    rewritten = dict(TableRewrite.objects.values_list("table", "rewritten_at"))
    changed = _changed()
    return sorted(table for table, ended in changed.items() if table not in rewritten or rewritten[table] <= ended)


def rewrite_in_window(*, now: datetime, seconds: float) -> Rewritten:
    """Rewrite what is due and not too large for that, if the window of the settings is open, for about so long."""
    window = settings.MEMORYHUB_REWRITE_WINDOW
    end = Window.of(window).end_of(now) if window else None
    if end is None:
        return Rewritten([], {})
    told = rewrite(until=min(end, now + timedelta(seconds=seconds)), most_bytes=int(seconds * BYTES_A_SECOND))
    if told.done:
        flush()
    return told


def rewrite(*, until: datetime, most_bytes: int | None = None) -> Rewritten:
    """Rewrite what is due, a table after the other, none beyond `until`; not inside a transaction."""
    done: list[str] = []
    left: dict[str, str] = {}
    with _alone() as is_alone:
        for table in due_tables():
            if not is_alone:
                reason = BUSY
            elif most_bytes is not None and _size(table) > most_bytes:
                reason = LONG
            else:
                reason = _rewrite(table, until)
            if reason:
                left[table] = reason
            else:
                done.append(table)
    return Rewritten(done, left)


def flush() -> bool:
    """Have the server let go of the old files and begin another one of its log of changes; False: we may not."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("CHECKPOINT")
            cursor.execute("SELECT pg_switch_wal()")
    except ProgrammingError:
        return False
    return True


def _changed() -> dict[str, datetime]:
    """Table → when the last erasure was over that changed it."""
    cases = PrivacyCase.objects.filter(type=CaseType.ERASURE, state=CaseState.COMPLETED)
    # It began by the database's clock; who ran it may have come with an older time of their own.
    ended = cases.annotate(ended=Greatest("started_at", "completed_at")).order_by("ended")
    told = ended.values_list("counts", "ended")
    return {table: moment for counts, moment in told if moment for table in _tables_of(counts)}


def _tables_of(counts: dict[str, int]) -> set[str]:
    """The tables of the stores in which there was something; files and the like have none."""
    known = {model._meta.label: model for model in apps.get_models()}
    found: list[Any] = [*ALWAYS, *(known[label] for label, count in counts.items() if count and label in known)]
    links = [field.remote_field.through for model in found for field in model._meta.local_many_to_many]
    return {model._meta.db_table for model in [*found, *links]}


@contextmanager
def _alone() -> Iterator[bool]:
    """Whether nobody else rewrites meanwhile; with a time for the lock of each table."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [REWRITE_LOCK])
        [is_alone] = cursor.fetchone()
        if not is_alone:
            yield False
            return
        cursor.execute("SELECT set_config('lock_timeout', %s, false)", [f"{LOCK_MILLISECONDS}ms"])
        try:
            yield True
        finally:
            cursor.execute("RESET lock_timeout")
            cursor.execute("RESET statement_timeout")
            cursor.execute("SELECT pg_advisory_unlock(%s)", [REWRITE_LOCK])


def _rewrite(table: str, until: datetime) -> str:
    """Rewrite it; why not, otherwise."""
    with connection.cursor() as cursor:
        cursor.execute(_CLOCK)
        now, gone = cursor.fetchone()
    # In this order: an erasure that begins later ends later than what is noted.
    if PrivacyCase.objects.filter(type=CaseType.ERASURE, state__in=RUNNING).exists():
        return ERASING
    if gone <= _changed()[table]:
        return SEEN
    reason = _vacuum(table, milliseconds=int((until - now).total_seconds() * 1000))
    if not reason:
        TableRewrite.objects.update_or_create(table=table, defaults={"rewritten_at": gone})
    return reason


def _size(table: str) -> int:
    """Bytes on the disk, with its indexes."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_total_relation_size(%s::regclass)", [table])
        [size] = cursor.fetchone()
    return int(size)


def _vacuum(table: str, *, milliseconds: int) -> str:
    if milliseconds <= 0:
        return LONG
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('statement_timeout', %s, false)", [f"{milliseconds}ms"])
        for _attempt in range(TRIES):
            try:
                cursor.execute(f"VACUUM (FULL) {connection.ops.quote_name(table)}")
            except OperationalError as error:
                if not isinstance(error.__cause__, LockNotAvailable):
                    return LONG
            else:
                return ""
    return BUSY
