"""What is peculiar to each list of an export when its rows come in: what they name, what follows from their texts,
which rows belong to them, and what the hub checks of a text before it serves it."""

import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import F, Model, Q
from django.db.models.functions import Greatest

from memories import audit, conf, outbox
from memories.capture.ingest import PostedMessage, attribute
from memories.curation.statements import guarding
from memories.curation.statements.voices import WriteTrust
from memories.facts import review_items
from memories.facts.review_items import REASON_OF_FLAG, REASON_OF_TRUST, Reason, ReviewQuestion
from memories.files import paths
from memories.files.passages import ChangedText
from memories.graph import following, naming
from memories.imports.column_values import built, check_letters, id_of, inner, inners, mapped, reference
from memories.imports.raw_documents import RefusedDocumentError
from memories.imports.records import OTHERS
from memories.kinds import PLAIN, Kind
from memories.models import (
    ActorKind,
    EndUser,
    Episode,
    Fact,
    FactEvidence,
    FactRefusal,
    FactRelation,
    FactRevision,
    FileVersion,
    GraphEntity,
    GraphTriple,
    GroupEvidence,
    GroupFact,
    GroupMember,
    MemoryFile,
    MemoryGroup,
    MemoryScope,
    ProfileRevision,
    ProfileSection,
    Role,
    Session,
    SessionQueue,
    Status,
    Tenant,
    Trust,
    Turn,
    WorkingMemory,
)
from memories.models.folding import refusal_of_key, refusal_of_text
from memories.scoring import terms
from memories.text.injection import detection
from memories.trust import rank

OTHER_NAME, TAKEN, DANGLING, ONLY_A_HASH = "other_name", "taken", "dangling", "only_a_hash"
FOLLOWS, OF_GROUP = "made_anew", "groups"
_REVIEW = "review_needed"


class Here:
    """Where rows come to. `names`: the person's ids in the other hub. `is_trusted`: staff made the export, so an
    operator's word in it stays one; otherwise nothing of it has more trust than the person. `taken`: old ids of
    sessions in whose place the person has another one. `group_facts`: those that nobody has told yet."""

    person: EndUser

    def __init__(self, tenant: Tenant, now: datetime, *, is_trusted: bool) -> None:
        self.tenant, self.now, self.is_trusted = tenant, now, is_trusted
        self.is_anybody = False
        self.names: frozenset[str] = frozenset()
        self.taken: set[uuid.UUID] = set()
        self.group_facts: dict[uuid.UUID, Mapping[str, Any]] = {}
        self.left_out = Counter[str]()

    def known(self, model: Any, olds: Any) -> dict[uuid.UUID, uuid.UUID]:
        raise NotImplementedError


class Row(NamedTuple):
    """A row of the export, and what is made of it."""

    old: uuid.UUID
    made: Any
    given: Mapping[str, Any]


Given = Mapping[str, Any]


def _nothing(*_: Any) -> None:
    """Nothing is peculiar to it."""


@dataclass(frozen=True)
class Way:
    """How the rows of a list come in. `once`: columns that no two rows of a person have alike, among those that
    `is_once` and `among` select. `parents` and `loose`: columns that name rows, which must be there, or may. `complete`
    sets what follows, `after` stores what belongs to new rows, `link` what rows say of one another, `store` does it all
    for rows that are unlike the others."""

    model: Any
    once: tuple[str, ...] = ()
    among: Q = field(default_factory=Q)
    is_once: Callable[[Any], bool] = lambda _: True
    is_taken_whole: bool = False
    parents: dict[str, type[Model]] = field(default_factory=dict)
    loose: dict[str, type[Model]] = field(default_factory=dict)
    left_out: Callable[[Here, Given], str] = lambda *_: ""
    complete: Callable[[Here, Any, Given], None] = _nothing
    after: Callable[[Here, Sequence[Row]], None] = _nothing
    link: Callable[[Here, Sequence[Given]], None] | None = None
    store: Callable[[Here, Sequence[Given]], tuple[int, int, Mapping[str, int]]] | None = None


def _written(here: Here, made: Any) -> bool:
    """Note who wrote it, as far as that is believed; whether an operator's word needs no check."""
    if here.is_trusted:
        by = (getattr(made, name, "") for name in ("actor_kind", "trust"))
        return getattr(made, "binding", False) or ActorKind.OPERATOR in by or Trust.OPERATOR in by
    if getattr(made, "trust", "") and rank(made.trust) > rank(Trust.USER):
        made.trust = Trust.USER
    if getattr(made, "actor_kind", "") == ActorKind.OPERATOR:
        made.actor_kind = ActorKind.COMMAND
    for name in ("binding", "locked", "binding_before"):
        if hasattr(made, name):
            setattr(made, name, False)
    return False


def _check(here: Here, made: Any, *texts: str) -> None:
    """Errors: RefusedDocumentError for a short text that speaks to a model."""
    if _written(here, made):
        return
    voice = WriteTrust(Trust.USER, imports=True)
    if any(text and guarding.flags_of_text(text, voice) for text in texts):
        raise RefusedDocumentError(_REVIEW)


def _session(_here: Here, made: Session, _: Given) -> None:
    # Its turns raise these as they come.
    made.turn_count = made.token_count = made.round_count = 0


def _beside_sessions(here: Here, rows: Sequence[Row]) -> None:
    queues, windows = [], []
    for row in rows:
        queue, window = (inner(row.given, name) for name in ("queue", "working_memory"))
        known = {"tenant_id": here.tenant.pk, "session_id": row.made.pk}
        done = built(SessionQueue, {"extracted_number": queue.get("extracted_number", 0)}).extracted_number
        count = row.given.get("turn_count")
        waits = isinstance(count, int) and done < count
        since = here.now if waits else None
        queues.append(SessionQueue(**known, extracted_number=done, pending_user=waits, first_pending_at=since))
        own = built(WorkingMemory, {**window, "parked_at": None, "failure": ""})
        own.tenant_id, own.session_id, own.episode_number = here.tenant.pk, row.made.pk, own.left_number
        windows.append(own)
    SessionQueue.objects.bulk_create(queues)
    WorkingMemory.objects.bulk_create(windows)


def _turn(_here: Here, made: Turn, _: Given) -> None:
    if isinstance(made.parts, dict) or isinstance(made.tool_calls, dict):
        raise RefusedDocumentError("/parts invalid")
    by = made.author
    attribute(made, PostedMessage(made.role, made.content, author=by))
    made.author = by
    made.terms = terms.pack(made.own_text) if made.is_searchable else None


def _beside_turns(_here: Here, rows: Sequence[Row]) -> None:
    """Their sessions count them; a window has what has not left it."""
    by_session: dict[uuid.UUID, list[Turn]] = {}
    for row in rows:
        by_session.setdefault(row.made.session_id, []).append(row.made)
    for session, turns in by_session.items():
        own = Session.objects.filter(pk=session)
        first = min(turn.number for turn in turns)
        own.filter(turn_count=0).update(deleted_number=first - 1)
        own.update(
            turn_count=Greatest("turn_count", max(turn.number for turn in turns)),
            token_count=F("token_count") + sum(turn.token_count for turn in turns),
            round_count=F("round_count") + sum(turn.role == Role.USER for turn in turns),
        )
        window = WorkingMemory.objects.get(pk=session)
        left = [turn for turn in turns if turn.left_at or turn.number <= window.left_number]
        window.left_tokens += sum(turn.token_count for turn in left)
        window.left_rounds += sum(turn.role == Role.USER for turn in left)
        window.save(update_fields=["left_tokens", "left_rounds"])


def _fact(here: Here, made: Fact, given: Given) -> None:
    if not made.content:
        raise RefusedDocumentError("/content blank")
    if isinstance(made.structured, list) or isinstance(made.document, list) or not _are_triples(made):
        raise RefusedDocumentError("/structured invalid")
    is_operators = _written(here, made)
    is_limited = given.get("allowed_users") or given.get("allowed_others")
    made.allowed_users = [here.person.external_id] if is_limited else []
    # Whether everybody is told is for this hub's operators to say.
    made.scope = MemoryScope.PRIVATE if made.scope == MemoryScope.PUBLIC else made.scope
    made.say(made.content)
    if made.status != Status.ACTIVE or is_operators:
        return
    voice = WriteTrust(Trust(made.trust), imports=True)
    flags = {*guarding.flags_of_fact(made, voice)}
    new = flags & {detection.INSTRUCTIONS} - set(made.flags) if here.is_trusted else flags
    if new or not (here.is_trusted or voice.is_believed(conf.rules(here.tenant))):
        made.status, made.flags = Status.PENDING, sorted({*made.flags, *new})


def _are_triples(made: Fact) -> bool:
    try:
        return all(isinstance(part, str) for _, _, *parts, _ in following.triples_of(made) for part in parts)
    except (KeyError, TypeError, ValueError, AttributeError):
        return False


def _beside_facts(here: Here, rows: Sequence[Row]) -> None:
    facts = [row.made for row in rows]
    _evidence(here, rows)
    FactRevision.objects.bulk_create(revision for row in rows for revision in _revisions(here, row))
    following.follow(facts, now=here.now)
    # Triples of facts are dated by them.
    outbox.facts_changed([(fact, {}) for fact in facts if fact.status == Status.ACTIVE], now=here.now)
    waiting = [fact for fact in facts if fact.status == Status.PENDING]
    review_items.ask_all((ReviewQuestion(_why(fact), fact=fact) for fact in waiting), run=None, now=here.now)


def _why(fact: Fact) -> Any:
    found = (reason for flag, reason in REASON_OF_FLAG.items() if flag in fact.flags)
    return next(found, REASON_OF_TRUST.get(fact.trust, Reason.SUGGESTED))


def _evidence(here: Here, rows: Sequence[Row]) -> None:
    given = [(row.made, one) for row in rows for one in inners(row.given, "evidence")]
    turns = here.known(Turn, (reference(one, "turn") for _, one in given))
    sessions = here.known(Session, (reference(one, "session") for _, one in given))
    made = []
    for fact, one in given:
        session, turn = sessions.get(reference(one, "session") or fact.pk), reference(one, "turn")
        if session is None or reference(one, "session") in here.taken:
            here.left_out[DANGLING] += 1
            continue
        own = built(FactEvidence, one)
        own.tenant_id, own.fact_id, own.session_id = here.tenant.pk, fact.pk, session
        own.turn_id = turns.get(turn) if turn else None
        made.append(own)
    FactEvidence.objects.bulk_create(made, ignore_conflicts=True)


def _revisions(here: Here, row: Row) -> Any:
    """What changed in a fact. A change set is of the other hub: nothing here is undone with it."""
    for one in inners(row.given, "revisions"):
        own = built(FactRevision, {**one, "change_set": None})
        own.tenant_id, own.fact_id = here.tenant.pk, row.made.pk
        own.before, own.after = (_snapshot(here, one.get(name)) for name in ("before", "after"))
        if not here.is_trusted and own.actor_kind == ActorKind.OPERATOR:
            own.actor_kind = ActorKind.COMMAND
        yield own


def _snapshot(here: Here, state: Any) -> dict[str, Any]:
    """A state of a fact, which an operator can bring back: with this hub's names and ids."""
    check_letters(state)
    names = (*audit.REVISED_FIELDS, *audit.REVISED_MOMENTS, "superseded_by")
    kept = {name: state[name] for name in names if name in state} if isinstance(state, dict) else {}
    if "allowed_users" in kept:
        is_limited = kept["allowed_users"] or state.get("allowed_others")
        kept["allowed_users"] = [here.person.external_id] if is_limited else []
    if old := reference(kept, "superseded_by"):
        kept["superseded_by"] = str(mapped(here.person.pk, old))
    return kept


def _link_facts(here: Here, rows: Sequence[Given]) -> None:
    told = [(row, one) for row in rows for one in inners(row, "relations")]
    olds = [reference(row, name) for row in rows for name in ("id", "superseded_by")]
    known = here.known(Fact, [*olds, *(reference(one, "target") for _, one in told)])
    for row in rows:
        fact, later = (known.get(reference(row, name) or here.person.pk) for name in ("id", "superseded_by"))
        if fact and later and fact != later:
            Fact.objects.filter(pk=fact, superseded_by=None).update(superseded_by=later)
    relations = []
    for row, one in told:
        fact, target = (known.get(reference(of, name) or here.person.pk) for of, name in ((row, "id"), (one, "target")))
        if fact and target and fact != target:
            own = built(FactRelation, one)
            own.tenant_id, own.fact_id, own.target_id = here.tenant.pk, fact, target
            relations.append(own)
    FactRelation.objects.bulk_create(relations, ignore_conflicts=True)


def _refusals(here: Here, rows: Sequence[Given]) -> tuple[int, int, Mapping[str, int]]:
    """What was refused there is refused here, where the fact that says it came, too: of the others only a keyed hash of
    that hub is left."""
    known = here.known(Fact, (reference(row, "fact") for row in rows))
    facts = {fact.pk: fact for fact in Fact.objects.filter(pk__in=known.values())}
    made = []
    for row in rows:
        fact = facts.get(known.get(reference(row, "fact") or here.person.pk, here.person.pk))
        by_key = row.get("kind") == FactRefusal.RefusalKind.KEY
        if fact and (fact.key or not by_key):
            own = built(FactRefusal, row)
            own.actor_kind = own.actor_kind if here.is_trusted else ActorKind.COMMAND
            own.digest = refusal_of_key(fact.category, fact.key) if by_key else refusal_of_text(fact.content)
            own.tenant_id, own.end_user_id, own.fact_id = here.tenant.pk, here.person.pk, fact.pk
            made.append(own)
    before = FactRefusal.objects.filter(end_user=here.person.pk).count()
    FactRefusal.objects.bulk_create(made, ignore_conflicts=True)
    new = FactRefusal.objects.filter(end_user=here.person.pk).count() - before
    return new, len(made) - new, {ONLY_A_HASH: len(rows) - len(made)}


def _section(here: Here, made: Any, _: Given) -> None:
    _check(here, made, *(getattr(made, name, "") for name in ("summary", "before", "after")))
    if hasattr(made, "change_set"):
        made.change_set = None


def _episode(here: Here, made: Episode, _: Given) -> None:
    if not made.summary or made.first_number > made.last_number:
        raise RefusedDocumentError("/summary invalid")
    _check(here, made, *made.text.split("\n"), made.text)
    made.say(made.summary)


def _beside_episodes(_here: Here, rows: Sequence[Row]) -> None:
    """Turns that they tell of need no other episode."""
    for row in rows:
        WorkingMemory.objects.filter(pk=row.made.session_id).update(
            episode_number=Greatest("episode_number", row.made.last_number), episodes_made=F("episodes_made") + 1
        )


def _check_long(here: Here, made: Any, text: str) -> None:
    """The same for notes, as the API checks them."""
    if not _written(here, made) and guarding.newly_speaks(ChangedText("", text)):
        raise RefusedDocumentError(_REVIEW)


def _file(here: Here, made: MemoryFile, _: Given) -> None:
    if paths.fault_of_file(made.path):
        raise RefusedDocumentError("/path invalid_path")
    _check_long(here, made, made.content if made.is_text else "")


def _beside_files(here: Here, rows: Sequence[Row]) -> None:
    versions = []
    for row in rows:
        for one in inners(row.given, "versions"):
            own = built(FileVersion, {**one, "change_set": None})
            own.tenant_id, own.file_id = here.tenant.pk, row.made.pk
            _written(here, own)
            versions.append(own)
    FileVersion.objects.bulk_create(versions)


def _plain(kind: Kind) -> Callable[[Here, Any, Given], None]:
    def complete(here: Here, made: Any, _: Given) -> None:
        _check_long(here, made, made.content)
        made.change_set = None
        topic = kind.plain.topic if kind.plain else ""
        made.say(made.content, **({topic: getattr(made, topic)} if topic else {}))

    return complete


def _entity(_here: Here, made: GraphEntity, _: Given) -> None:
    if not made.name:
        raise RefusedDocumentError("/name blank")
    made.digest = naming.digest_of(made.name)


def _link_entities(here: Here, rows: Sequence[Given]) -> None:
    known = here.known(GraphEntity, (reference(row, name) for row in rows for name in ("id", "merged_into")))
    for row in rows:
        own, other = (known.get(reference(row, name) or here.person.pk) for name in ("id", "merged_into"))
        if own and other and own != other:
            GraphEntity.objects.filter(pk=own, merged_into=None).update(merged_into=other)


def _triple(here: Here, made: GraphTriple, _: Given) -> None:
    _check(here, made, made.predicate)
    made.dated_at = made.valid_from or made.created_at


def _groups(here: Here, rows: Sequence[Given]) -> tuple[int, int, Mapping[str, int]]:
    """Groups with the person as their member, where an operator vouches for it. One that this hub knows under its own
    id keeps the members that it has."""
    counts = Counter[str]()
    for row in rows if here.is_trusted else ():
        given = inner(row, "group")
        old = id_of(given)
        group, member = mapped(here.tenant.pk, old), mapped(here.person.pk, id_of(row))
        members = GroupMember.objects.filter(tenant=here.tenant, end_user=here.person.pk)
        if members.filter(group__in=[old, group]).exists():
            counts["there"] += 1
        elif MemoryGroup.objects.filter(pk=old, tenant=here.tenant).exists():
            counts[TAKEN] += 1
        else:
            counts["stored"] += 1
            own = built(MemoryGroup, given)
            own.pk, own.tenant = group, here.tenant
            made = built(GroupMember, row)
            made.pk, made.tenant, made.end_user_id, made.group_id = member, here.tenant, here.person.pk, group
            MemoryGroup.objects.bulk_create([own], ignore_conflicts=True)
            GroupMember.objects.bulk_create([made])
    left = {TAKEN: counts[TAKEN], OF_GROUP: 0 if here.is_trusted else len(rows)}
    return counts["stored"], counts["there"], left


def _group_facts(here: Here, rows: Sequence[Given]) -> tuple[int, int, Mapping[str, int]]:
    """They rest on what the person said, which comes with `said_in_groups`."""
    if not here.is_trusted:
        return 0, 0, {OF_GROUP: len(rows)}
    here.group_facts |= {id_of(row): row for row in rows}
    return 0, 0, {}


def _said_in_groups(here: Here, rows: Sequence[Given]) -> tuple[int, int, Mapping[str, int]]:
    """Facts that are about the person, or that they alone said, with what they said. About whom others are, the export
    does not say."""
    counts = Counter[str]()
    for row in rows:
        old = reference(inner(row, "fact"), "id")
        given = here.group_facts.pop(old, None) if old else None
        group = mapped(here.tenant.pk, reference(given, "group") or old) if given and old else None
        if not (old and given and group):
            counts[OTHERS if here.is_trusted else OF_GROUP] += 1
        elif not MemoryGroup.objects.filter(pk=group, tenant=here.tenant).exists():
            counts[DANGLING] += 1
        elif GroupFact.objects.filter(pk=mapped(here.person.pk, old), tenant=here.tenant).exists():
            counts["there"] += 1
        else:
            counts["stored"] += 1
            fact = built(GroupFact, {**given, "change_set": None})
            fact.pk, fact.tenant, fact.group_id = mapped(here.person.pk, old), here.tenant, group
            fact.about_id = here.person.pk if given.get("about_you") else None
            _check(here, fact, fact.content)
            fact.say(fact.content)
            evidence = built(GroupEvidence, row)
            evidence.pk, evidence.tenant = mapped(here.person.pk, id_of(row)), here.tenant
            evidence.fact_id, evidence.end_user_id = fact.pk, here.person.pk
            fact.save(force_insert=True)
            evidence.save(force_insert=True)
    return counts.pop("stored", 0), counts.pop("there", 0), counts


_OPEN = Q(status__in=[Status.ACTIVE, Status.PENDING])
WAYS: Mapping[str, Way] = {
    "sessions": Way(
        Session, ("agent_id", "external_id"), is_taken_whole=True, complete=_session, after=_beside_sessions
    ),
    "turns": Way(
        Turn, ("session_id", "number"), parents={"session": Session}, complete=_turn, after=_beside_turns
    ),
    "facts": Way(
        Fact, ("agent_id", "content_hash"), _OPEN, lambda fact: fact.status in (Status.ACTIVE, Status.PENDING),
        complete=_fact, after=_beside_facts, link=_link_facts,
    ),
    "refusals": Way(FactRefusal, store=_refusals),
    "profile_sections": Way(ProfileSection, ("agent_id", "section"), complete=_section),
    "profile_history": Way(ProfileRevision, complete=_section),
    "episodes": Way(
        Episode, ("session_id", "first_number"), parents={"session": Session}, complete=_episode,
        after=_beside_episodes,
    ),
    "files": Way(MemoryFile, ("agent_id", "path"), complete=_file, after=_beside_files),
    **{kind.plural: Way(kind.model, complete=_plain(kind)) for kind in PLAIN},
    "groups": Way(MemoryGroup, store=_groups),
    "group_facts": Way(GroupFact, store=_group_facts),
    "said_in_groups": Way(GroupEvidence, store=_said_in_groups),
    "graph_entities": Way(GraphEntity, ("digest",), complete=_entity, link=_link_entities),
    # Those of facts follow their facts.
    "graph_triples": Way(
        GraphTriple, parents={"subject": GraphEntity, "object": GraphEntity}, loose={"turn": Turn},
        left_out=lambda _, row: FOLLOWS if row.get("fact") else "", complete=_triple,
    ),
}  # fmt: skip
