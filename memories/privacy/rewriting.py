"""Rewrites tables: the text of a deleted row stays in the file of its table until then.

A rewrite (VACUUM FULL) locks its table for everybody, so it is off by default and runs only in the hours that the
operator names. It keeps rows that an open transaction may still see: such tables are left to another time.
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

from memories.db import tenancy
from memories.db.sessions import own_session
from memories.db.statement_timeouts import unbounded
from memories.models import CaseState, CaseType, EndUser, Fact, PrivacyCase, TableRewrite

TASK = "memories.tasks.rewrite_tables"
# A statement that waits for the table's lock makes all others wait behind it.
LOCK_MILLISECONDS = 200
TRIES = 5
# The rate of a slow disk. A task that takes longer is ended, and would have locked its table in vain.
BYTES_A_SECOND = 10_000_000
# Any number, the same for all: one process at a time rewrites.
REWRITE_LOCK = 6_110_307
RUNNING = (CaseState.RUNNING, CaseState.VERIFYING)
# Every erasure changes these, though their stores may count no rows.
ALWAYS = (PrivacyCase, EndUser, Fact)
BUSY, SEEN, ERASING, LONG, DENIED = "busy", "seen", "erasing", "long", "denied"
# When the oldest transaction began that may see deleted rows. A replication slot may always see them, and so may a
# transaction whose start our role may not read. One that writes in another database of the server counts, too: no
# snapshot here, that of VACUUM included, is newer than the oldest transaction that writes anywhere.
_CLOCK = """
    SELECT clock_timestamp(), least(
        clock_timestamp(),
        (SELECT min(CASE query WHEN '<insufficient privilege>' THEN 'epoch' ELSE xact_start END) FROM pg_stat_activity
            WHERE pid <> pg_backend_pid()
                AND (backend_xid IS NOT NULL OR backend_xmin IS NOT NULL AND
                    (datname = current_database() OR datname IS NULL))),
        (SELECT min(prepared) FROM pg_prepared_xacts),
        (SELECT 'epoch'::timestamptz FROM pg_replication_slots WHERE xmin IS NOT NULL LIMIT 1)
    )
"""


@dataclass(frozen=True)
class RewriteHours:
    """Hours of each day, in UTC; over midnight when it ends before it begins."""

    begins: time
    ends: time

    @classmethod
    def of(cls, text: str) -> "RewriteHours":
        """Parse hours like 02:00-04:30. Errors: ValueError."""
        begins, _, ends = text.partition("-")
        return cls(time.fromisoformat(begins), time.fromisoformat(ends))

    def end_of(self, now: datetime) -> datetime | None:
        """The end of the window that is open now; None when none is."""
        for day in (now.date() - timedelta(days=1), now.date()):
            begins = datetime.combine(day, self.begins, now.tzinfo)
            ends = datetime.combine(day, self.ends, now.tzinfo)
            ends += timedelta(days=1) if ends <= begins else timedelta()
            if begins <= now < ends:
                return ends
        return None


@dataclass(frozen=True)
class Rewritten:
    """Tables that were rewritten, and table → reason for those that were not.

    Reasons: `busy` (in use), `seen` (an old transaction may see deleted rows), `erasing` (an erasure is under way),
    `long` (there is not enough time), `denied` (our role may not).
    """

    done: list[str]
    left: dict[str, str]


@dataclass(frozen=True)
class Horizon:
    """How long deleted rows are on the disk: until the last table of the case was rewritten, None before, in the hours
    of `window` in UTC, "" for never."""

    window: str
    rewritten_at: datetime | None


def horizon(case: PrivacyCase) -> Horizon:
    """How long the rows that a completed case erased are on the disk."""
    tables = _tables_of(case.counts)
    moments = TableRewrite.objects.filter(table__in=tables).order_by("rewritten_at")
    found = list(moments.values_list("rewritten_at", flat=True))
    ended = max((moment for moment in (case.started_at, case.completed_at) if moment), default=None)
    is_over = ended and len(found) == len(tables) and found[0] > ended
    return Horizon(settings.MEMORYHUB_REWRITE_WINDOW, found[-1] if is_over else None)


def is_due(*, now: datetime) -> bool:
    """Whether the configured window is open and there is something to rewrite."""
    window = settings.MEMORYHUB_REWRITE_WINDOW
    return bool(window and RewriteHours.of(window).end_of(now) and due_tables())


def enqueue() -> None:
    """Queue the task that rewrites what is due."""
    async_task(TASK)


def due_tables() -> list[str]:
    """Tables that an erasure changed since they were last rewritten."""
    rewritten = dict(TableRewrite.objects.values_list("table", "rewritten_at"))
    changed = _changed()
    return sorted(table for table, ended in changed.items() if table not in rewritten or rewritten[table] <= ended)


def rewrite_in_window(*, now: datetime, seconds: float) -> Rewritten:
    """Rewrite what is due for about so long, if the configured window is open and the table is not too large."""
    window = settings.MEMORYHUB_REWRITE_WINDOW
    end = RewriteHours.of(window).end_of(now) if window else None
    if end is None:
        return Rewritten([], {})
    result = rewrite(until=min(end, now + timedelta(seconds=seconds)), most_bytes=int(seconds * BYTES_A_SECOND))
    if result.done:
        flush()
    return result


def rewrite(*, until: datetime, most_bytes: int | None = None) -> Rewritten:
    """Rewrite what is due, one table after the other, until `until`; not inside a transaction."""
    done: list[str] = []
    left: dict[str, str] = {}
    with own_session(), _alone() as is_alone:
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
    """Have the server release the old files and switch to a new WAL file; False: our role may not."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("CHECKPOINT")
            cursor.execute("SELECT pg_switch_wal()")
    except ProgrammingError:
        return False
    return True


def _changed() -> dict[str, datetime]:
    """Table → when the last erasure that changed it ended."""
    cases = PrivacyCase.objects.filter(type=CaseType.ERASURE, state=CaseState.COMPLETED)
    # The database's clock says when it began; the clock of the process may be behind.
    ended = cases.annotate(ended=Greatest("started_at", "completed_at")).order_by("ended")
    rows = ended.values_list("counts", "ended")
    return {table: moment for counts, moment in rows if moment for table in _tables_of(counts)}


def _tables_of(counts: dict[str, int]) -> set[str]:
    """The tables of the stores that had rows; files and the like have none."""
    models = {model._meta.label: model for model in apps.get_models()}
    found: list[Any] = [*ALWAYS, *(models[label] for label, count in counts.items() if count and label in models)]
    links = [field.remote_field.through for model in found for field in model._meta.local_many_to_many]
    return {model._meta.db_table for model in [*found, *links]}


@contextmanager
def _alone() -> Iterator[bool]:
    """Yields whether nobody else rewrites; with a time limit for the lock of each table."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [REWRITE_LOCK])
        [is_alone] = cursor.fetchone()
        if not is_alone:
            yield False
            return
        cursor.execute("SELECT set_config('lock_timeout', %s, false)", [f"{LOCK_MILLISECONDS}ms"])
        try:
            with unbounded():
                yield True
        finally:
            cursor.execute("RESET lock_timeout")
            cursor.execute("SELECT pg_advisory_unlock(%s)", [REWRITE_LOCK])


def _rewrite(table: str, until: datetime) -> str:
    """Rewrite the table; "", or the reason why not."""
    with connection.cursor() as cursor:
        cursor.execute(_CLOCK)
        now, gone = cursor.fetchone()
    if not _allowed(table):
        return DENIED
    # The clock was read before: an erasure that begins later ends later than the moment that is noted.
    if PrivacyCase.objects.filter(type=CaseType.ERASURE, state__in=RUNNING).exists():
        return ERASING
    if gone <= _changed()[table]:
        return SEEN
    reason = _vacuum(table, milliseconds=int((until - now).total_seconds() * 1000))
    if not reason:
        TableRewrite.objects.update_or_create(table=table, defaults={"rewritten_at": gone})
    return reason


def _allowed(table: str) -> bool:
    """Whether our role owns the table, or may maintain it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT CASE WHEN pg_has_role(relowner, 'USAGE') THEN true "
            "WHEN current_setting('server_version_num')::int < 170000 THEN false "
            "ELSE has_table_privilege(oid, 'MAINTAIN') END FROM pg_class WHERE oid = quote_ident(%s)::regclass",
            [table],
        )
        return bool(cursor.fetchone()[0])


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
                with tenancy.alone():
                    cursor.execute(f"VACUUM (FULL) {connection.ops.quote_name(table)}")
            except OperationalError as error:
                if not isinstance(error.__cause__, LockNotAvailable):
                    return LONG
            else:
                return ""
    return BUSY
