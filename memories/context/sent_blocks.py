"""The blocks of memory that requests of a conversation were sent with: found again for its next request, and kept.

A block is sent again only while all that it tells is as it was. What its memories said is sealed with it, and what did
not hold any more of the person's words: a correction, a deletion or an erasure breaks the one or changes the other.
"""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Count, Sum
from django.db.models.functions import Length

from memories.context import log
from memories.context.rendering import one_line
from memories.db import binary_rows
from memories.kinds import PLAIN
from memories.models import EndUser, Episode, GroupFact, MemoryFile, Passage, SentBlock, Tenant, Turn
from memories.models.hand_written import read, selected
from memories.models.ids import new_id
from memories.retrieval.outdated import Outdated, Written
from memories.retrieval.serving import CALLED, HAS_ENDED, UNTOLD
from memories.text.memory_block import FRAMES

# No provider keeps a prompt for longer; a conversation that goes on later is sent what is remembered then.
KEPT = timedelta(days=7)
# Of a session. Beyond it the older half goes at once: else each further request would change what the one before had.
MOST_BLOCKS, MOST_CHARACTERS = 400, 400_000
# Blocks at the places of a request that are looked at, those of its session first.
MOST_FOUND = 500
# (kind, id) of a memory, as contexts have them.
Told = tuple[str, str]
Kind = SentBlock.Kind

_PERSON = ("id", "tenant_id", "external_id", "time_zone", "generation")
_BLOCK = ("id", "session", "place", "kind", "text", "items", "seal", "ended", "token_count", "sent_at")


def _states(kind: str, table: str, says: str, changed: str, more: str = "") -> str:
    """Of each told memory of a kind a hash of what the context told of it, and when that was last `changed`."""
    return f"""
        SELECT told.block, hashtextextended(ROW('{kind}', m.id, {says})::text, 0) AS state, {changed} AS changed
        FROM told JOIN {table} m ON m.tenant_id = %(tenant)s AND m.id = told.id {more}
        WHERE told.kind = '{kind}'
    """  # noqa: S608  (our own text)


_OF_TENANT = "tenant_id = %(tenant)s"
_UNEXPIRED = "m.expires_at IS NULL OR m.expires_at > now()"
# Fields of a fact whose change is another statement, or shows it to others: what reinforces or fades it is neither.
_STATED = "'content', 'source_error', 'status', 'scope', 'agent_id', 'allowed_users', 'allowed_roles'"
_REVISED = f"""(
    SELECT max(r.created_at) FROM memories_factrevision r
    WHERE r.{_OF_TENANT} AND r.fact_id = m.id AND r.before ?| ARRAY[{_STATED}]
)"""  # noqa: S608  (our own text)
# A job carries on with what it read: what it writes is new, and not what the agent must know now.
_EDITED = f"""(
    SELECT max(r.created_at) FROM memories_profilerevision r
    WHERE r.{_OF_TENANT} AND r.end_user_id = m.end_user_id AND r.section = m.section AND r.agent_id = m.agent_id
        AND r.actor_kind <> 'run'
)"""  # noqa: S608  (our own text)
_SPOKEN = f"""EXISTS (
    SELECT 1 FROM memories_groupevidence e JOIN memories_enduser w ON w.{_OF_TENANT} AND w.id = e.end_user_id
    WHERE e.{_OF_TENANT} AND e.fact_id = m.id AND w.restricted_at IS NULL
)"""  # noqa: S608  (our own text)
_MEMBER = f"""EXISTS (
    SELECT 1 FROM memories_groupmember g
    WHERE g.{_OF_TENANT} AND g.group_id = m.group_id AND g.end_user_id = told.person
)"""  # noqa: S608  (our own text)
# Of each kind that contexts serve.
_PARTS = (
    _states(
        "fact",
        "memories_fact",
        f"m.status, md5(m.content), md5(m.source_error), m.scope, m.agent_id, m.allowed_users, m.allowed_roles, "
        f"{_UNEXPIRED}, o.serve, o.restricted_at IS NULL",
        _REVISED,
        f"JOIN memories_enduser o ON o.{_OF_TENANT} AND o.id = m.end_user_id",
    ),
    _states("profile", "memories_profilesection", f"m.summary = '', {_EDITED}", _EDITED),
    _states(
        "triple",
        "memories_graphtriple",
        "m.status, m.subject_id, m.predicate, m.object_id, m.valid_from, m.valid_to",
        "m.updated_at",
    ),
    _states(
        "group_fact",
        "memories_groupfact",
        f"md5(m.content), m.trashed_at IS NULL, p.trashed_at IS NULL, {_MEMBER}, {_SPOKEN}, o.restricted_at IS NULL",
        "m.trashed_at",
        f"JOIN memories_memorygroup p ON p.{_OF_TENANT} AND p.id = m.group_id "
        f"LEFT JOIN memories_enduser o ON o.{_OF_TENANT} AND o.id = m.about_id",
    ),
    _states(
        "file", "memories_memoryfile", f"m.path, m.version, m.trashed_at IS NULL, {_UNEXPIRED}", "m.updated_at"
    ),
    *(_states(kind.name, kind.model._meta.db_table, "m.trashed_at IS NULL", "m.trashed_at") for kind in PLAIN),
    _states("episode", "memories_episode", f"m.status, md5(m.summary), {_UNEXPIRED}", "m.updated_at"),
    # A passage is written once; it is shown while its turn is.
    _states(
        "document",
        "memories_passage",
        "t.left_at IS NULL, t.role <> 'system', NOT t.metadata @> '{\"hide_from_ui\": true}'::jsonb",
        "t.left_at",
        f"JOIN memories_attachment a ON a.{_OF_TENANT} AND a.id = m.attachment_id "
        f"JOIN memories_turn t ON t.{_OF_TENANT} AND t.id = a.turn_id",
    ),
    # Nobody changes what a turn says, but for what a redaction leaves of it, which the person's generation tells.
    _states(
        "turn",
        "memories_turn",
        "m.author, m.role, m.own, m.left_at IS NULL, m.content = '', m.flagged IS TRUE",
        "m.left_at",
    ),
)  # fmt: skip
SEALS = f"""
    SELECT block, coalesce(bit_xor(state), 0) AS seal, max(changed) AS changed
    FROM ({" UNION ALL ".join(_PARTS)}) states GROUP BY block
"""  # noqa: S608  (our own text)
# The session has gone on to another message since, so this one is an equal one.
_PASSED = f"""(
    %(alone)s AND found.kind = 'volatile' AND found.place = ANY(%(places)s) AND EXISTS (
        SELECT 1 FROM memories_sentblock later WHERE later.{_OF_TENANT} AND later.end_user_id = found.person
            AND later.session = found.session AND later.kind = 'volatile' AND later.sent_at > found.sent_at
    )
)"""  # noqa: S608  (our own text)
# One statement before the first byte of each answer: the person, the blocks at these places, of each session that has
# one the stable block, too, and whether their seals hold.
_FIND = f"""
    WITH person AS (
        SELECT {selected("p", _PERSON)}, p.serve AND p.restricted_at IS NULL AND NOT {UNTOLD} AS served,
            {HAS_ENDED} AS has_ended
        FROM memories_enduser p WHERE {CALLED}
    ), placed AS (
        SELECT {selected("b", _BLOCK)}, person.id AS person
        FROM memories_sentblock b JOIN person ON person.id = b.end_user_id
        WHERE b.{_OF_TENANT} AND b.sent_at > %(since)s
            AND (b.place = ANY(%(places)s) OR (%(whole)s AND b.session = %(session)s))
        ORDER BY b.session = %(session)s DESC, b.sent_at DESC LIMIT %(most)s
    ), found AS (
        SELECT * FROM placed
        UNION ALL
        SELECT {selected("b", _BLOCK)}, person.id
        FROM memories_sentblock b JOIN person ON person.id = b.end_user_id
        WHERE b.{_OF_TENANT} AND b.sent_at > %(since)s AND b.place IN (SELECT session FROM placed)
            AND b.id NOT IN (SELECT id FROM placed)
    ), told AS (
        SELECT found.id AS block, found.person, item->>'kind' AS kind, (item->>'id')::uuid AS id
        FROM found, jsonb_array_elements(found.items) item
    ), seals AS ({SEALS})
    SELECT {selected("person", _PERSON)}, person.served, person.has_ended, found.id, found.session, found.place,
        found.kind, found.text, found.items::text, found.seal = coalesce(seals.seal, 0) AND NOT {_PASSED}, found.ended,
        found.token_count, found.sent_at
    FROM person LEFT JOIN found ON true LEFT JOIN seals ON seals.block = found.id
"""  # noqa: S608  (columns of our own models)
_SEAL = f"""
    WITH told AS (
        SELECT block, kind, id, %(person)s::uuid AS person
        FROM unnest(%(blocks)s::int[], %(kinds)s::text[], %(ids)s::uuid[]) given(block, kind, id)
    ) {SEALS}
"""  # noqa: S608  (our own text)


@dataclass(frozen=True)
class Block:
    """A block that stands, or will stand, in requests of a conversation: with its system prompt, or before the message
    at `place`. One without a text stands nowhere, and says that nothing does.

    `items`: each memory in it, as kind and id; `part` where only a part of it is told.
    """

    kind: str
    place: bytes
    text: str = ""
    items: Sequence[Mapping[str, Any]] = ()
    token_count: int = 0
    # What did not hold any more when it was built (Outdated.stamp).
    ended: int = 0
    id: uuid.UUID = field(default_factory=new_id)
    session: bytes = b""
    sent_at: datetime | None = None

    @property
    def told(self) -> frozenset[Told]:
        """What need not be told again."""
        return frozenset((item["kind"], item["id"]) for item in self.items if not item.get("part"))

    @property
    def ages(self) -> bool:
        """Whether it has sentences that can stop to hold while their memory stays as it was. A fact that holds is what
        counts."""
        return any(item["kind"] not in ("fact", "triple") for item in self.items)


@dataclass(frozen=True)
class SentBefore:
    """What earlier requests of a conversation were sent that still holds.

    `session`: of these blocks. `person`: None for somebody unknown, and for whom nothing may be served. `stale`: ids of
    blocks that tell what does not hold any more; `checked`: of those that were read again since something was decided,
    and hold.
    """

    session: bytes
    person: EndUser | None = None
    stable: Block | None = None
    volatile: Mapping[bytes, Block] = field(default_factory=dict)
    stale: frozenset[uuid.UUID] = frozenset()
    checked: frozenset[uuid.UUID] = frozenset()
    outdated: Outdated | None = None

    @property
    def blocks(self) -> list[Block]:
        return [*([self.stable] if self.stable else []), *self.volatile.values()]

    @property
    def told(self) -> frozenset[Told]:
        return frozenset[Told]().union(*(block.told for block in self.blocks))


class Sending(NamedTuple):
    """What is to be kept of a request that was sent on: new blocks, and of earlier ones which hold and which do not.

    `began`: before anything of it was read. `person`: as it was read for it; None: it was not known then.
    """

    user_id: str
    agent_id: str
    session: bytes
    began: datetime
    person: EndUser | None
    blocks: Sequence[Block] = ()
    stale: frozenset[uuid.UUID] = frozenset()
    checked: frozenset[uuid.UUID] = frozenset()
    ended: int = 0

    def __bool__(self) -> bool:
        return bool(self.blocks or self.stale or self.checked)


def sent_before(
    tenant: Tenant,
    *,
    user_id: str,
    agent_id: str,
    session: bytes,
    places: Sequence[bytes],
    of_others: bool,
    is_alone: bool,
    whole_session: bool,
    now: datetime,
) -> SentBefore:
    """What a conversation was sent before, with `places` of its messages.

    `of_others`: without blocks of `session`, those of another are taken: a session that is kept nowhere has no name,
    and its earlier messages tell it from others. `is_alone`: nothing tells a message from an equal one of the session,
    and only the last that was sent is the same. `whole_session`: with all its blocks, at whatever place.
    """
    given = {"tenant": tenant.pk, "user": user_id, "agent": agent_id, "session": session, "since": now - KEPT}
    given |= {"places": [*places, session], "alone": is_alone, "whole": whole_session}
    rows = binary_rows.fetched(_FIND, {**given, "most": MOST_FOUND})
    is_served = bool(rows) and tenant.serve and rows[0][len(_PERSON)]
    if not is_served:
        return SentBefore(session)
    person = read(EndUser, _PERSON, rows[0])
    person.tenant = tenant
    outdated = Outdated(person, has_ended=rows[0][len(_PERSON) + 1])
    found = [(_block(row), row[-4]) for row in (row[len(_PERSON) + 2 :] for row in rows) if row[0] is not None]
    own = _of_one_session(found, session, places, of_others=of_others)
    stale = frozenset(block.id for block, holds in own if not holds)
    holding = [block for block, holds in own if holds]
    stable = next((block for block in holding if block.kind == Kind.STABLE), None)
    volatile = {block.place: block for block in holding if block.kind == Kind.VOLATILE}
    session = own[0][0].session if own else session
    return _without_outdated(SentBefore(session, person, stable, volatile, stale, outdated=outdated))


def _block(row: Sequence[Any]) -> Block:
    pk, session, place, kind, text, items, _holds, ended, token_count, sent_at = row
    return Block(kind, place, text, json.loads(items), token_count, ended, pk, session, sent_at)


def _of_one_session(
    found: Sequence[tuple[Block, bool]], session: bytes, places: Sequence[bytes], *, of_others: bool
) -> list[tuple[Block, bool]]:
    """The blocks of this session; without any, those of the session with the latest of the places."""
    if not of_others or any(block.session == session for block, _ in found):
        return [one for one in found if one[0].session == session]
    order = {place: at for at, place in enumerate(places)}
    placed = [block for block, _ in found if block.place in order]
    if not placed:
        return []
    chosen = max(placed, key=lambda block: (order[block.place], block.sent_at)).session
    return [one for one in found if one[0].session == chosen]


def _without_outdated(before: SentBefore) -> SentBefore:
    """Without blocks that repeat a sentence that does not hold any more. They are read again after each decision."""
    # Asked only where something can have ended: the context that follows asks the same.
    read_again = [
        block for block in before.blocks if before.outdated and block.ages and block.ended != before.outdated.stamp
    ]
    if not read_again or before.outdated is None:
        return before
    stale = _telling_outdated(read_again, before.outdated, before.person)
    return replace(
        before,
        stable=None if before.stable and before.stable.id in stale else before.stable,
        volatile={place: block for place, block in before.volatile.items() if block.id not in stale},
        stale=before.stale | stale,
        checked=frozenset(block.id for block in read_again) - stale,
    )


def _telling_outdated(blocks: Sequence[Block], outdated: Outdated, person: EndUser | None) -> frozenset[uuid.UUID]:
    """Which of them tell a sentence, as if it held, that was corrected, forgotten or is over."""
    if outdated.is_empty or person is None:
        return frozenset()
    said = _said({(item["kind"], item["id"]) for block in blocks for item in block.items}, person)
    return frozenset(
        block.id
        for block in blocks
        if any(
            outdated.is_still_in(block.text, source, as_shown=one_line)
            for source in (*_of_profile(block), *(said.get((item["kind"], item["id"])) for item in block.items))
            if source is not None
        )
    )


# Kind → the texts with these ids that contexts show sentences of; of the profile the block has a line.
_SOURCES: Mapping[str, tuple[Any, str]] = {
    "episode": (Episode, "summary"),
    "group_fact": (GroupFact, "content"),
    "file": (MemoryFile, "content"),
    "document": (Passage, "content"),
    **{kind.name: (kind.model, "content") for kind in PLAIN},
}
_LABELS = tuple(f"- {label}" for frame in FRAMES.values() for label in frame.labels)


def _said(wanted: Iterable[Told], person: EndUser) -> dict[Told, Turn | Written]:
    """What turns said, and what was written about the person; a query for each kind."""
    ids: dict[str, list[str]] = {}
    for kind, pk in wanted:
        ids.setdefault(kind, []).append(pk)
    found: dict[Told, Turn | Written] = {}
    turns = Turn.objects.filter(tenant=person.tenant_id, pk__in=ids.get("turn", [])).defer("terms", "parts")
    found.update((("turn", str(turn.pk)), turn) for turn in turns)
    for kind, (model, column) in _SOURCES.items():
        if kind in ids:
            rows = model._default_manager.filter(tenant=person.tenant_id, pk__in=ids[kind])
            found.update(((kind, str(pk)), Written(text)) for pk, text in rows.values_list("pk", column))
    return found


def _of_profile(block: Block) -> list[Written]:
    """Lines of the profile, as they were told: the profile may have gone on since."""
    lines = (line for line in block.text.splitlines() if block.kind == Kind.STABLE)
    return [Written(line[len(label) :]) for line in lines for label in _LABELS if line.startswith(label)]


def keep(sending: Sending, tenant: Tenant, *, now: datetime) -> int:
    """Keep what was sent, for later requests of its conversation; how many blocks.

    Nothing is kept of a person who was erased, restricted, merged or redacted since, nor a block of which a memory has
    changed since: it was sent, and is not sent again. Two requests at once keep the block of one.
    """
    if not sending:
        return 0
    with transaction.atomic():
        person = _lock(sending, tenant)
        if person is None:
            return 0
        mine = SentBlock.objects.filter(tenant=tenant, end_user=person)
        of_session = mine.filter(session=sending.session)
        mine.filter(pk__in=sending.stale).delete()
        of_session.filter(sent_at__lt=now - KEPT).delete()
        mine.filter(pk__in=sending.checked).update(ended=sending.ended)
        sealed = _sealed(_lasting(sending.blocks, person, tenant), person, since=sending.began)
        rows = [_row(block, seal, sending, person, now=now) for block, seal in sealed]
        SentBlock.objects.bulk_create(rows, ignore_conflicts=True)
        _keep_within(of_session)
    return len(rows)


def _lock(sending: Sending, tenant: Tenant) -> EndUser | None:
    """The person, locked as everybody locks who deletes a memory; None if nothing may be kept of them."""
    rows = EndUser.objects.select_for_update(no_key=True, of=("self",)).called(tenant, sending.user_id)
    person = rows.filter(restricted_at=None).first()
    was = sending.person
    if person is None or (was is not None and (was.pk, was.generation) != (person.pk, person.generation)):
        return None
    return person


def _lasting(blocks: Sequence[Block], person: EndUser, tenant: Tenant) -> list[Block]:
    """Those whose memories are all there, and of people whose data may be used. Others' are locked, too: their erasure
    has been here before, or finds these rows."""
    keys = [(item["kind"], uuid.UUID(item["id"])) for block in blocks for item in block.items]
    behind = log.people_behind(keys)
    others = set().union(*(people.all for people in behind.values())) - {person.pk}
    rows = EndUser.objects.select_for_update(no_key=True, of=("self",)).filter(tenant=tenant, pk__in=others)
    usable = {person.pk, *(row.pk for row in rows.order_by("pk") if row.restricted_at is None)}
    present = log.people_behind(keys, lock_shared=True)

    def lasts(item: Mapping[str, Any]) -> bool:
        people = present.get((item["kind"], uuid.UUID(item["id"])))
        return people is not None and people.may_be_named(usable)

    return [block for block in blocks if all(map(lasts, block.items))]


def _sealed(blocks: Sequence[Block], person: EndUser, *, since: datetime) -> list[tuple[Block, int]]:
    """The blocks with what seals them, without those that tell a memory that has changed since then."""
    told = [(at, item["kind"], item["id"]) for at, block in enumerate(blocks) for item in block.items]
    seals: dict[int, tuple[int, datetime | None]] = {}
    if told:
        numbers, kinds, ids = zip(*told, strict=True)
        given: dict[str, Any] = {"tenant": person.tenant_id, "person": person.pk}
        given |= {"blocks": list(numbers), "kinds": list(kinds), "ids": list(ids)}
        seals = {at: (seal, changed) for at, seal, changed in binary_rows.fetched(_SEAL, given)}
    found = [(block, *seals.get(at, (0, None))) for at, block in enumerate(blocks)]
    return [(block, seal) for block, seal, changed in found if changed is None or changed < since]


def _row(block: Block, seal: int, sending: Sending, person: EndUser, *, now: datetime) -> SentBlock:
    return SentBlock(
        id=block.id,
        tenant_id=person.tenant_id,
        end_user=person,
        agent_id=sending.agent_id,
        session=sending.session,
        place=block.place,
        kind=block.kind,
        text=block.text,
        items=list(block.items),
        rests_on=sorted({uuid.UUID(item["id"]) for item in block.items}),
        seal=seal,
        ended=block.ended,
        token_count=block.token_count,
        sent_at=now,
    )


def _keep_within(of_session: Any) -> None:
    """Of more blocks than a session may have the older half goes, but for the stable one."""
    volatile = of_session.filter(kind=Kind.VOLATILE)
    size = volatile.aggregate(count=Count("pk"), characters=Sum(Length("text")))
    if size["count"] > MOST_BLOCKS or (size["characters"] or 0) > MOST_CHARACTERS:
        older = volatile.order_by("sent_at", "pk").values_list("pk", flat=True)[: max(1, size["count"] // 2)]
        of_session.filter(pk__in=list(older)).delete()


def sweep(now: datetime, *, most: int = 1_000) -> int:
    """Delete some of those that are too old; how many."""
    old = SentBlock.objects.filter(sent_at__lt=now - KEPT).order_by("sent_at").values_list("pk", flat=True)[:most]
    return SentBlock.objects.filter(pk__in=list(old)).delete()[0]
