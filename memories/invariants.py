"""What must be true of the stored data at every moment. Each invariant is a query that finds the rows that break it."""

import re
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from django.db import connection
from django.db.models import Count, Exists, F, OuterRef, QuerySet

from memories import conf
from memories.db import tenancy
from memories.kinds import EMBEDDED, Kind
from memories.models import EndUser, Episode, ExtractionRun, Fact, Role, StoreItem, Tenant, Turn, WorkingMemory
from memories.models.folding import text_digest
from memories.store import namespaces
from memories.text.transcript import fed
from memoryhub.database.placement import COLUMN, Placement, placements

SHOWN_IDS = 20

_TABLE = re.compile(r"\bmemories_\w+")
_DISARMED = """
    SELECT q.session_id FROM memories_sessionqueue q
    WHERE q.due_at IS NULL AND q.parked_at IS NULL AND EXISTS (
        SELECT 1 FROM memories_turn t
        WHERE t.tenant_id = q.tenant_id AND t.session_id = q.session_id AND t.number > q.extracted_number
            AND t.role = 'user' AND (t.left_at IS NULL OR t.author IN ('', 'person'))
    )
"""
# Table → the table whose rows its rows belong to, and the column that names them.
_BELONGS_TO = {
    "sessionqueue": ("session", "session_id"),
    "workingmemory": ("session", "session_id"),
    "factevidence": ("fact", "fact_id"),
    "factrelation": ("fact", "fact_id"),
    "factrevision": ("fact", "fact_id"),
    "factrefusal": ("enduser", "end_user_id"),
    "profilerevision": ("enduser", "end_user_id"),
    "change": ("changeset", "change_set_id"),
    "idempotencyrecord": ("apikey", "api_key_id"),
    "privacyexport": ("privacycase", "case_id"),
    "privacyexportpiece": ("privacyexport", "export_id"),
    # The database has no reference by (tenant, id) to turns.
    "turnvector": ("turn", "turn_id"),
    "graphtriple": ("turn", "turn_id"),
}
_FOREIGN = " UNION ALL ".join(
    f"SELECT parent.id FROM memories_{table} child JOIN memories_{parent} parent ON parent.id = child.{column} "  # noqa: S608
    "WHERE child.tenant_id <> parent.tenant_id"
    for table, (parent, column) in _BELONGS_TO.items()
)


@dataclass(frozen=True)
class Broken:
    """An invariant that does not hold: its name, what it says, how many rows break it and the first of their ids."""

    name: str
    says: str
    count: int
    ids: tuple[uuid.UUID, ...]


@dataclass(frozen=True)
class Invariant:
    """A name, a sentence that is true of sound data, and SQL or a function that finds the ids of rows that break it."""

    name: str
    says: str
    find: str | Callable[[], Iterable[uuid.UUID]]


def check() -> list[Broken]:
    """The invariants that do not hold now. Each one sees one snapshot, so traffic may go on meanwhile."""
    return [broken for invariant in INVARIANTS if (broken := _check(invariant))]


def _check(invariant: Invariant) -> Broken | None:
    if connection.settings_dict["DISTRIBUTED"]:
        found = iter(_everywhere(invariant))
    else:
        found = iter(_selected(invariant.find) if isinstance(invariant.find, str) else invariant.find())
    ids = tuple(islice(found, SHOWN_IDS))
    count = len(ids) + sum(1 for _ in found)
    return Broken(invariant.name, invariant.says, count, ids) if count else None


def _everywhere(invariant: Invariant) -> Iterable[uuid.UUID]:
    """On several nodes of one tenant after the other: a node has no rows of another node to join."""
    found: dict[uuid.UUID, None] = {}
    for tenant_id in list(Tenant.objects.order_by("pk").values_list("pk", flat=True)):
        with tenancy.of_tenant(tenant_id):
            query = invariant.find
            broken = _selected(_of_tenant(query, tenant_id)) if isinstance(query, str) else query()
            found |= dict.fromkeys(broken)
    return found


def _of_tenant(sql: str, tenant_id: uuid.UUID) -> str:
    """The query of this tenant's rows alone: each table's name stands for those in it."""
    parts = []
    for table in sorted(set(_TABLE.findall(sql))):
        if placements()[table] is Placement.DISTRIBUTED:
            parts.append(f"{table} AS NOT MATERIALIZED (SELECT * FROM public.{table} WHERE {COLUMN} = '{tenant_id}')")  # noqa: S608
        elif placements()[table] is Placement.LOCAL:
            # Of the coordinator; the trail and its seals.
            parts.append(f"{table} AS MATERIALIZED (SELECT * FROM public.{table} WHERE tenant_uuid = '{tenant_id}')")  # noqa: S608
    return f"WITH {', '.join(parts)} {sql}"


def _selected(sql: str) -> Iterator[uuid.UUID]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        yield from (row_id for (row_id,) in cursor.fetchall())


def _disarmed() -> Iterable[uuid.UUID]:
    # Without a model nothing is ever armed.
    return () if conf.llm().mode == conf.LLM_OFF else _selected(_DISARMED)


def _uncovered() -> Iterator[uuid.UUID]:
    """Sessions with a user turn at or below the watermark that was to be fed and that no committed run covers."""
    covering = ExtractionRun.objects.filter(
        session=OuterRef("session"),
        status=ExtractionRun.RunStatus.COMMITTED,
        first_number__lte=OuterRef("number"),
        last_number__gte=OuterRef("number"),
    )
    passed = Turn.objects.readable().filter(
        ~Exists(covering), role=Role.USER, number__lte=F("session__queue__extracted_number")
    )
    # Retention deleted the runs of earlier turns.
    return _sessions_with_fed(passed.filter(number__gt=F("session__deleted_runs_number")))


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


def _not_in_episodes() -> Iterator[uuid.UUID]:
    """Sessions with a fed user turn that is marked as summarized and is in no episode.

    After an episode was deleted for good this cannot be checked any more.
    """
    whole = WorkingMemory.objects.annotate(kept=Count("session__episodes")).filter(kept=F("episodes_made"))
    covering = Episode.objects.filter(
        session=OuterRef("session"), first_number__lte=OuterRef("number"), last_number__gte=OuterRef("number")
    )
    passed = Turn.objects.current().filter(
        ~Exists(covering), role=Role.USER, number__lte=F("session__working_memory__episode_number")
    )
    return _sessions_with_fed(passed.filter(session__in=whole.values("pk")))


def _sessions_with_fed(turns: QuerySet[Turn]) -> Iterator[uuid.UUID]:
    last = None
    for turn in turns.order_by("session", "number").iterator():
        if turn.session_id != last and any(fed([turn])):
            last = turn.session_id
            yield last


def _misowned() -> Iterator[uuid.UUID]:
    """Items whose namespace names another person than theirs, or somebody although they are the tenant's."""
    patterns = dict(Tenant.objects.values_list("pk", "person_namespaces"))
    people = EndUser.objects.filter(tenant__in=StoreItem.objects.values("tenant"))
    leads_to: dict[tuple[uuid.UUID, str | None], uuid.UUID] = {}
    for tenant_id, user_id, pk, merged in people.values_list(
        "tenant_id", "external_id", "pk", "merged_into"
    ).iterator():
        leads_to[tenant_id, user_id] = merged or pk
    rows = StoreItem.objects.order_by("pk").values_list("pk", "tenant_id", "namespace", "end_user__external_id")
    for item, tenant_id, namespace, owner in rows.iterator():
        named = namespaces.person_in(namespace.split("."), patterns[tenant_id])
        wanted = leads_to.get((tenant_id, named.user_id)) if named else None
        if wanted != (leads_to.get((tenant_id, owner)) if owner is not None else None):
            yield item


def _wrong_vectors(kind: Kind) -> str:
    embedded = kind.embedded
    assert embedded  # noqa: S101  (only those of EMBEDDED come here)
    return f"""
        SELECT m.id FROM {embedded.vectors._meta.db_table} v JOIN {kind.model._meta.db_table} m
            ON m.id = v.{embedded.reference}_id JOIN memories_embeddingspace s ON s.id = v.space_id
        WHERE v.end_user_id <> m.end_user_id OR v.tenant_id <> m.tenant_id
            OR s.state = 'serving' AND m.embedded_hash = m.content_hash AND v.text_digest <> m.content_hash
    """  # noqa: S608  (names of ours)


INVARIANTS = (
    Invariant(
        "triples_of_facts",
        "Each fact that holds or held has a triple of its key and value, and one of each that a model stated with it; "
        "no other fact has any. None outlives its fact.",
        """
        SELECT f.id FROM memories_fact f LEFT JOIN (
            SELECT fact_id, array_agg(place ORDER BY place) AS places FROM memories_graphtriple GROUP BY fact_id
        ) t ON t.fact_id = f.id
        WHERE coalesce(t.places, '{}') <> CASE
            WHEN f.status = 'active' OR f.status IN ('superseded', 'archived') AND f.valid_to IS NOT NULL
            THEN array(SELECT generate_series(
                CASE WHEN f.key <> '' AND f.value <> '' THEN 0 ELSE 1 END, coalesce(jsonb_array_length(f.triples), 0)
            )::smallint)
            ELSE '{}' END
        UNION SELECT f.id FROM memories_fact f JOIN memories_graphtriple t ON t.fact_id = f.id
        WHERE t.end_user_id <> f.end_user_id OR t.agent_id <> f.agent_id
            OR t.valid_to IS NULL AND (f.valid_to IS NOT NULL OR f.expires_at IS NOT NULL)
            OR t.valid_to > greatest(t.valid_from, least(f.valid_to, f.expires_at, t.valid_to))
            OR t.place = 0 AND (
                t.valid_from <> f.valid_from
                OR (t.valid_to IS NULL) <> (f.valid_to IS NULL AND f.expires_at IS NULL)
            )
        """,
    ),
    Invariant(
        "graph_owners",
        "A triple, its entities, its fact and its turn are one person's.",
        """
        SELECT t.id FROM memories_graphtriple t
        JOIN memories_graphentity s ON s.id = t.subject_id JOIN memories_graphentity o ON o.id = t.object_id
        LEFT JOIN memories_graphentity r ON r.id IN (s.merged_into_id, o.merged_into_id)
        LEFT JOIN memories_fact f ON f.id = t.fact_id
        WHERE (t.tenant_id, t.end_user_id) <> (s.tenant_id, s.end_user_id)
            OR (t.tenant_id, t.end_user_id) <> (o.tenant_id, o.end_user_id)
            OR r.end_user_id <> t.end_user_id OR f.end_user_id <> t.end_user_id
        """,
    ),
    Invariant("store_owners", "Items of the store belong to whom their namespace names.", _misowned),
    Invariant(
        "store_tenants",
        "Items of the store, their people and their vectors are of one tenant.",
        """
        SELECT i.id FROM memories_storeitem i
        LEFT JOIN memories_enduser p ON p.id = i.end_user_id
        LEFT JOIN memories_storeitemvector v ON v.item_id = i.id
        WHERE p.tenant_id <> i.tenant_id OR v.tenant_id <> i.tenant_id
        """,
    ),
    Invariant(
        "file_versions",
        "Every memory file has its versions without gaps, and says what the last of them says.",
        """
        SELECT f.id FROM memories_memoryfile f
        LEFT JOIN memories_fileversion v ON v.file_id = f.id AND v.version = f.version
        WHERE v.id IS NULL OR v.content <> f.content OR v.tenant_id <> f.tenant_id
            OR (v.verb = 'delete') <> (f.trashed_at IS NOT NULL)
            OR (SELECT count(*) <> f.version - min(o.version) + 1 FROM memories_fileversion o WHERE o.file_id = f.id)
        """,
    ),
    Invariant(
        "turn_numbers",
        "A session's turns are numbered without gaps, from 1 or from what retention left, and its counts agree.",
        """
        SELECT s.id FROM memories_session s
        LEFT JOIN (
            SELECT session_id, count(*) AS turns, min(number) AS first, max(number) AS last, sum(token_count) AS tokens
            FROM memories_turn GROUP BY session_id
        ) t ON t.session_id = s.id
        WHERE coalesce(t.turns, 0) + s.deleted_number <> s.turn_count
            OR coalesce(t.tokens, 0) + s.deleted_tokens <> s.token_count
            OR t.first <> s.deleted_number + 1 OR t.last <> s.turn_count
        """,
    ),
    Invariant(
        "queue_rows",
        "Every session has its row in the queue.",
        """
        SELECT s.id FROM memories_session s LEFT JOIN memories_sessionqueue q ON q.session_id = s.id
        WHERE q.session_id IS NULL
        """,
    ),
    Invariant(
        "watermarks",
        "No watermark is beyond the session's turns.",
        """
        SELECT s.id FROM memories_session s JOIN memories_sessionqueue q ON q.session_id = s.id
        WHERE q.extracted_number > s.turn_count
        """,
    ),
    Invariant(
        "runs_apart",
        "Committed extractions of a session do not overlap.",
        """
        SELECT id FROM (
            SELECT id, first_number, max(last_number) OVER (
                PARTITION BY session_id ORDER BY first_number, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS covered
            FROM memories_extractionrun WHERE status = 'committed'
        ) r WHERE covered >= first_number
        """,
    ),
    Invariant(
        "runs_below",
        "No committed extraction reaches beyond the watermark.",
        """
        SELECT r.id FROM memories_extractionrun r JOIN memories_sessionqueue q ON q.session_id = r.session_id
        WHERE r.status = 'committed' AND r.last_number > q.extracted_number
        """,
    ),
    Invariant("turns_covered", "Every fed turn up to the watermark is in a committed extraction.", _uncovered),
    Invariant("armed", "A session with user turns to extract is due or parked.", _disarmed),
    Invariant(
        "owners",
        "Every row has the tenant of its person and the person of its session.",
        """
        SELECT x.id FROM (
            SELECT id, tenant_id, end_user_id FROM memories_session
            UNION ALL SELECT id, tenant_id, end_user_id FROM memories_turn
            UNION ALL SELECT id, tenant_id, end_user_id FROM memories_fact
            UNION ALL SELECT id, tenant_id, end_user_id FROM memories_profilesection
            UNION ALL SELECT id, tenant_id, end_user_id FROM memories_extractionrun
        ) x JOIN memories_enduser p ON p.id = x.end_user_id
        WHERE x.tenant_id <> p.tenant_id
        UNION ALL
        SELECT x.id FROM (
            SELECT id, session_id, end_user_id FROM memories_turn
            UNION ALL SELECT id, session_id, end_user_id FROM memories_extractionrun
            UNION ALL SELECT id, session_id, end_user_id FROM memories_episode
            UNION ALL SELECT turn_id, session_id, end_user_id FROM memories_turnvector
        ) x JOIN memories_session s ON s.id = x.session_id
        WHERE x.end_user_id <> s.end_user_id
        """,
    ),
    Invariant("tenants", "What belongs to another row has the tenant of that row.", _FOREIGN),
    Invariant(
        "names",
        "What leads to somebody else has nothing that is served.",
        # After a merge of people or a change of an id memories belong to the person; the old id only leads there. It
        # keeps what the undo of a merge needs: sections of the profile and refusals that both had.
        """
        SELECT n.id FROM memories_enduser n JOIN memories_enduser p ON p.id = n.merged_into_id
        WHERE p.merged_into_id IS NOT NULL OR p.tenant_id <> n.tenant_id
            OR EXISTS (SELECT 1 FROM memories_session s WHERE s.end_user_id = n.id)
            OR EXISTS (SELECT 1 FROM memories_fact f WHERE f.end_user_id = n.id)
            OR EXISTS (SELECT 1 FROM memories_reviewitem i WHERE i.end_user_id = n.id AND i.state = 'open')
        """,
    ),
    Invariant(
        "evidence",
        "Facts rest on turns of their own tenant and person.",
        """
        SELECT DISTINCT f.id FROM memories_factevidence e
        JOIN memories_fact f ON f.id = e.fact_id JOIN memories_turn t ON t.id = e.turn_id
        WHERE t.tenant_id <> f.tenant_id OR t.end_user_id <> f.end_user_id
            OR e.session_id <> t.session_id OR e.turn_number <> t.number
        """,
    ),
    Invariant(
        "sources",
        "Every extracted fact cites a turn.",
        # An operator's word stands by itself, and so does what outlived the deletion of its run.
        """
        SELECT f.id FROM memories_fact f
        WHERE f.extraction_id IS NOT NULL AND f.status IN ('active', 'pending') AND NOT f.binding
            AND NOT EXISTS (SELECT 1 FROM memories_factevidence e WHERE e.fact_id = f.id)
        """,
    ),
    Invariant("hashes", "Every fact's hash is that of its text.", _misfiled),
    Invariant(
        "active_open",
        "No active fact is closed or superseded.",
        """
        SELECT id FROM memories_fact WHERE status = 'active' AND (valid_to IS NOT NULL OR superseded_by_id IS NOT NULL)
        """,
    ),
    Invariant(
        "successors",
        "A superseded fact is closed and names a successor of the same person.",
        # A successor that was deleted for good, by a person or from the trash, cannot be named any more. Nor can the
        # audit trail name it once retention has pruned it.
        """
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
        """,
    ),
    Invariant(
        "revisions",
        "A fact has one revision for each of its versions.",
        """
        SELECT f.id FROM memories_fact f
        LEFT JOIN (
            SELECT fact_id, count(*) AS revisions, min(version) AS first, max(version) AS last
            FROM memories_factrevision GROUP BY fact_id
        ) r ON r.fact_id = f.id
        WHERE coalesce(r.revisions, 0) <> f.version OR r.first <> 1 OR r.last <> f.version
        """,
    ),
    Invariant(
        "asked",
        "Every fact that waits for review is asked about.",
        # What waits and is asked about nowhere would wait for ever.
        """
        SELECT f.id FROM memories_fact f
        WHERE f.status = 'pending' AND NOT EXISTS (
            SELECT 1 FROM memories_reviewitem i WHERE i.fact_id = f.id AND i.state = 'open'
        )
        """,
    ),
    Invariant(
        "questions",
        "A review item is about facts of its own tenant and person.",
        """
        SELECT i.id FROM memories_reviewitem i
        JOIN memories_enduser p ON p.id = i.end_user_id
        LEFT JOIN memories_profilerevision s ON s.id = i.proposed_section_id
        WHERE i.tenant_id <> p.tenant_id OR s.end_user_id <> i.end_user_id OR EXISTS (
            SELECT 1 FROM memories_fact f WHERE f.id IN (i.fact_id, i.known_id)
                AND (f.end_user_id <> i.end_user_id OR f.tenant_id <> i.tenant_id)
        )
        """,
    ),
    Invariant(
        "relations",
        "Relations join facts of one person.",
        """
        SELECT DISTINCT f.id FROM memories_factrelation r
        JOIN memories_fact f ON f.id = r.fact_id JOIN memories_fact t ON t.id = r.target_id
        WHERE f.end_user_id <> t.end_user_id
        """,
    ),
    Invariant(
        "windows",
        "What is not in a session's window agrees with its turns, and so does its count of rounds.",
        """
        SELECT s.id FROM memories_session s
        LEFT JOIN memories_workingmemory w ON w.session_id = s.id
        LEFT JOIN LATERAL (
            SELECT count(*) FILTER (WHERE t.role = 'user') AS rounds,
                coalesce(sum(t.token_count) FILTER (WHERE t.is_out), 0) AS left_tokens,
                count(*) FILTER (WHERE t.role = 'user' AND t.is_out) AS left_rounds
            FROM (
                SELECT role, token_count, number <= w.left_number OR left_at IS NOT NULL AS is_out
                FROM memories_turn WHERE session_id = s.id
            ) t
        ) t ON true
        WHERE w.session_id IS NULL OR t.rounds + s.deleted_rounds <> s.round_count OR w.left_number > s.turn_count
            OR t.left_tokens + s.deleted_tokens <> w.left_tokens
            OR t.left_rounds + s.deleted_rounds <> w.left_rounds OR w.left_number < s.deleted_number
        """,
    ),
    Invariant(
        "episodes_apart",
        "Episodes of a session do not overlap.",
        """
        SELECT id FROM (
            SELECT id, first_number, max(last_number) OVER (
                PARTITION BY session_id ORDER BY first_number, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS covered
            FROM memories_episode
        ) e WHERE covered >= first_number
        """,
    ),
    Invariant(
        "episodes_below",
        "No episode reaches beyond what is summed up.",
        """
        SELECT e.id FROM memories_episode e
        JOIN memories_workingmemory w ON w.session_id = e.session_id JOIN memories_session s ON s.id = e.session_id
        WHERE e.last_number > w.episode_number OR w.episode_number > s.turn_count
        """,
    ),
    Invariant("turns_told", "Every fed turn that is summed up is in an episode.", _not_in_episodes),
    Invariant(
        "vectors",
        "The vector of a memory is of its own text and person.",
        # A memory whose text has just changed waits for its vector: until then its hash says so.
        " UNION ALL ".join(map(_wrong_vectors, EMBEDDED)),
    ),
    Invariant("numbers", "Every number of a tenant's own is known and within its range.", _misnumbered),
)
