"""What must be true of the stored data at every moment: each check is one query that finds the rows that break it."""

import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from django.db import connection
from django.db.models import Exists, F, OuterRef

from memories import conf
from memories.models import ExtractionRun, Fact, Role, Tenant, Turn
from memories.models.folding import text_digest
from memories.pipeline import owner_invariants, window_invariants
from memories.pipeline.feed import fed

SHOWN_IDS = 20

NUMBERS = """
    SELECT s.id FROM memories_session s
    LEFT JOIN (
        SELECT session_id, count(*) AS turns, min(number) AS first, max(number) AS last, sum(token_count) AS tokens
        FROM memories_turn GROUP BY session_id
    ) t ON t.session_id = s.id
    WHERE coalesce(t.turns, 0) + s.deleted_number <> s.turn_count
        OR coalesce(t.tokens, 0) + s.deleted_tokens <> s.token_count
        OR t.first <> s.deleted_number + 1 OR t.last <> s.turn_count
"""
QUEUE_ROWS = """
    SELECT s.id FROM memories_session s LEFT JOIN memories_sessionqueue q ON q.session_id = s.id
    WHERE q.session_id IS NULL
"""
WATERMARKS = """
    SELECT s.id FROM memories_session s JOIN memories_sessionqueue q ON q.session_id = s.id
    WHERE q.extracted_number > s.turn_count
"""
RUN_OVERLAPS = """
    SELECT id FROM (
        SELECT id, first_number, max(last_number) OVER (
            PARTITION BY session_id ORDER BY first_number, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS covered
        FROM memories_extractionrun WHERE status = 'committed'
    ) r WHERE covered >= first_number
"""
RUNS_BEYOND = """
    SELECT r.id FROM memories_extractionrun r JOIN memories_sessionqueue q ON q.session_id = r.session_id
    WHERE r.status = 'committed' AND r.last_number > q.extracted_number
"""
DISARMED = """
    SELECT q.session_id FROM memories_sessionqueue q
    WHERE q.due_at IS NULL AND q.parked_at IS NULL AND EXISTS (
        SELECT 1 FROM memories_turn t
        WHERE t.session_id = q.session_id AND t.number > q.extracted_number AND t.role = 'user'
    )
"""
EVIDENCE = """
    SELECT DISTINCT f.id FROM memories_factevidence e
    JOIN memories_fact f ON f.id = e.fact_id JOIN memories_turn t ON t.id = e.turn_id
    WHERE t.tenant_id <> f.tenant_id OR t.end_user_id <> f.end_user_id
        OR e.session_id <> t.session_id OR e.turn_number <> t.number
"""
# An operator's word stands by itself, and so does what outlived the deletion of its run.
SOURCES = """
    SELECT f.id FROM memories_fact f
    WHERE f.extraction_id IS NOT NULL AND f.status IN ('active', 'pending') AND NOT f.binding
        AND NOT EXISTS (SELECT 1 FROM memories_factevidence e WHERE e.fact_id = f.id)
"""
ACTIVE_CLOSED = """
    SELECT id FROM memories_fact WHERE status = 'active' AND (valid_to IS NOT NULL OR superseded_by_id IS NOT NULL)
"""
# A successor that was deleted for good, by somebody or from the trash, leaves nothing to name; nor does the trail once
# retention has pruned it.
SUCCESSORS = """
    SELECT f.id FROM memories_fact f LEFT JOIN memories_fact n ON n.id = f.superseded_by_id
    WHERE f.status = 'superseded' AND (
        f.valid_to IS NULL OR n.end_user_id <> f.end_user_id OR f.superseded_by_id = f.id
        OR n.id IS NULL AND NOT EXISTS (
            SELECT 1 FROM memories_auditevent a WHERE a.tenant_uuid = f.tenant_id
                AND a.object_type = 'Fact' AND a.verb = 'delete' AND a.created_at >= f.valid_to
        ) AND NOT EXISTS (
            SELECT 1 FROM memories_decaypass d WHERE d.tenant_id = f.tenant_id
                AND d.as_of >= f.valid_to AND (d.counts ->> 'purged')::int > 0
        ) AND NOT EXISTS (
            SELECT 1 FROM memories_auditseal p WHERE p.tenant_uuid = f.tenant_id
                AND p.kind = 'pruning' AND p.newest_at >= f.valid_to
        )
    )
"""
REVISIONS = """
    SELECT f.id FROM memories_fact f
    LEFT JOIN (
        SELECT fact_id, count(*) AS revisions, min(version) AS first, max(version) AS last
        FROM memories_factrevision GROUP BY fact_id
    ) r ON r.fact_id = f.id
    WHERE coalesce(r.revisions, 0) <> f.version OR r.first <> 1 OR r.last <> f.version
"""
# What waits and is asked about nowhere would wait for ever.
UNASKED = """
    SELECT f.id FROM memories_fact f
    WHERE f.status = 'pending' AND NOT EXISTS (
        SELECT 1 FROM memories_reviewitem i WHERE i.fact_id = f.id AND i.state = 'open'
    )
"""
ITEMS = """
    SELECT i.id FROM memories_reviewitem i
    JOIN memories_enduser p ON p.id = i.end_user_id
    LEFT JOIN memories_profilerevision s ON s.id = i.proposed_section_id
    WHERE i.tenant_id <> p.tenant_id OR s.end_user_id <> i.end_user_id OR EXISTS (
        SELECT 1 FROM memories_fact f WHERE f.id IN (i.fact_id, i.known_id)
            AND (f.end_user_id <> i.end_user_id OR f.tenant_id <> i.tenant_id)
    )
"""
RELATIONS = """
    SELECT DISTINCT f.id FROM memories_factrelation r
    JOIN memories_fact f ON f.id = r.fact_id JOIN memories_fact t ON t.id = r.target_id
    WHERE f.end_user_id <> t.end_user_id
"""
# A memory whose text has just changed waits for its vector: until then its hash says so.
VECTORS = """
    SELECT m.id FROM (
        SELECT fact_id AS memory_id, space_id, tenant_id, end_user_id, text_digest FROM memories_factvector
        UNION ALL SELECT episode_id, space_id, tenant_id, end_user_id, text_digest FROM memories_episodevector
    ) v JOIN (
        SELECT id, tenant_id, end_user_id, content_hash, embedded_hash FROM memories_fact
        UNION ALL SELECT id, tenant_id, end_user_id, content_hash, embedded_hash FROM memories_episode
    ) m ON m.id = v.memory_id JOIN memories_embeddingspace s ON s.id = v.space_id
    WHERE v.end_user_id <> m.end_user_id OR v.tenant_id <> m.tenant_id
        OR s.state = 'serving' AND m.embedded_hash = m.content_hash AND v.text_digest <> m.content_hash
"""


@dataclass(frozen=True)
class Broken:
    """An invariant that does not hold: its name, what it says, how many rows break it and the first of their ids."""

    name: str
    says: str
    count: int
    ids: tuple[uuid.UUID, ...]


@dataclass(frozen=True)
class Invariant:
    """A name, a sentence that is true of sound data, and what finds the ids of rows that break it."""

    name: str
    says: str
    find: Callable[[], Iterable[uuid.UUID]]


def check() -> list[Broken]:
    """The invariants that do not hold now; each looks at one snapshot, so traffic may go on meanwhile."""
    return [broken for invariant in INVARIANTS if (broken := _judge(invariant))]


def _judge(invariant: Invariant) -> Broken | None:
    found = iter(invariant.find())
    ids = tuple(islice(found, SHOWN_IDS))
    count = len(ids) + sum(1 for _ in found)
    return Broken(invariant.name, invariant.says, count, ids) if count else None


def _rows(sql: str) -> Callable[[], Iterable[uuid.UUID]]:
    def find() -> Iterator[uuid.UUID]:
        with connection.cursor() as cursor:
            cursor.execute(sql)
            yield from (row_id for (row_id,) in cursor.fetchall())

    return find


def _disarmed() -> Iterable[uuid.UUID]:
    # Without a model nothing is ever armed.
    return () if conf.llm().mode == conf.LLM_OFF else _rows(DISARMED)()


def _uncovered() -> Iterator[uuid.UUID]:
    """Sessions with a user turn at or below the watermark that was to be fed and that no committed run covers."""
    covering = ExtractionRun.objects.filter(
        session=OuterRef("session"),
        status=ExtractionRun.Status.COMMITTED,
        first_number__lte=OuterRef("number"),
        last_number__gte=OuterRef("number"),
    )
    passed = Turn.objects.filter(~Exists(covering), role=Role.USER, number__lte=F("session__queue__extracted_number"))
    # Below that retention deleted the runs.
    passed = passed.filter(number__gt=F("session__deleted_runs_number"))
    last = None
    for turn in passed.order_by("session", "number").iterator():
        if turn.session_id != last and any(fed([turn])):
            last = turn.session_id
            yield last


def _misfiled() -> Iterator[uuid.UUID]:
    """Facts whose hash is not that of their text."""
    for fact_id, content, digest in Fact.objects.values_list("pk", "content", "content_hash").iterator():
        if bytes(digest) != text_digest(content):
            yield fact_id


def _misnumbered() -> Iterator[uuid.UUID]:
    """Tenants with numbers of their own that are ignored."""
    for tenant_id, numbers in Tenant.objects.exclude(numbers={}).values_list("pk", "numbers"):
        if conf.unusable_numbers(numbers):
            yield tenant_id


INVARIANTS = (
    Invariant(
        "turn_numbers",
        "A session's turns are numbered without gaps, from 1 or from what retention left, and its counts agree.",
        _rows(NUMBERS),
    ),
    Invariant("queue_rows", "Every session has its row in the queue.", _rows(QUEUE_ROWS)),
    Invariant("watermarks", "No watermark is beyond the session's turns.", _rows(WATERMARKS)),
    Invariant("runs_apart", "Committed extractions of a session do not overlap.", _rows(RUN_OVERLAPS)),
    Invariant("runs_below", "No committed extraction reaches beyond the watermark.", _rows(RUNS_BEYOND)),
    Invariant("turns_covered", "Every fed turn up to the watermark is in a committed extraction.", _uncovered),
    Invariant("armed", "A session with user turns to extract is due or parked.", _disarmed),
    Invariant(
        "owners",
        "Every row has the tenant of its person and the person of its session.",
        _rows(owner_invariants.OWNERS),
    ),
    Invariant("names", "What leads to somebody else has nothing that is served.", _rows(owner_invariants.NAMES)),
    Invariant("evidence", "Facts rest on turns of their own tenant and person.", _rows(EVIDENCE)),
    Invariant("sources", "Every extracted fact cites a turn.", _rows(SOURCES)),
    Invariant("hashes", "Every fact's hash is that of its text.", _misfiled),
    Invariant("active_open", "No active fact is closed or superseded.", _rows(ACTIVE_CLOSED)),
    Invariant("successors", "A superseded fact is closed and names a successor of the same person.", _rows(SUCCESSORS)),
    Invariant("revisions", "A fact has one revision for each of its versions.", _rows(REVISIONS)),
    Invariant("asked", "Every fact that waits for review is asked about.", _rows(UNASKED)),
    Invariant("questions", "A review item is about facts of its own tenant and person.", _rows(ITEMS)),
    Invariant("relations", "Relations join facts of one person.", _rows(RELATIONS)),
    Invariant(
        "windows",
        "What has left a session's window agrees with its turns, and so does its count of rounds.",
        _rows(window_invariants.WINDOWS),
    ),
    Invariant("episodes_apart", "Episodes of a session do not overlap.", _rows(window_invariants.EPISODE_OVERLAPS)),
    Invariant(
        "episodes_below", "No episode reaches beyond what is summed up.", _rows(window_invariants.EPISODES_BEYOND)
    ),
    Invariant("turns_told", "Every fed turn that is summed up is in an episode.", window_invariants.untold),
    Invariant("vectors", "The vector of a fact or an episode is of its own text and person.", _rows(VECTORS)),
    Invariant("numbers", "Every number of a tenant's own is known and within its range.", _misnumbered),
)
