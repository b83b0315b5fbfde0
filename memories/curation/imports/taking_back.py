"""Takes back what an import stored, some of it in each transaction, and says what stays because it was changed since.

What goes is deleted, not moved to the trash: the file can be imported again, perhaps for another person. A session that
is the import's alone goes whole, with what was made of it; of others the imported messages are redacted. People whom
the import made go last, if nothing else is there of them.
"""

import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q

from memories import outbox
from memories.audit import Actor
from memories.capture import branches
from memories.capture.session_rows import locked_queue
from memories.curation.change_sets import Changes
from memories.curation.imports import people
from memories.curation.profile.sections import empty_some, put_back_section
from memories.curation.sessions import delete_session
from memories.curation.turns import redact_turn
from memories.exceptions import NotFound, PersonRestricted, PreconditionFailed
from memories.facts import review_items
from memories.kinds import PLAIN
from memories.models import (
    ActorKind,
    EndUser,
    Event,
    Fact,
    FactEvidence,
    FactRefusal,
    GraphEntity,
    GraphTriple,
    GroupEvidence,
    GroupFact,
    GroupMember,
    Import,
    ImportedRow,
    MemoryFile,
    MemoryGroup,
    ProfileRevision,
    ProfileSection,
    ReviewItem,
    Session,
    Status,
    StoreItem,
    Turn,
)
from memories.queue import leases
from memories.queue.leases import Lease

# Rows of one transaction; a redacted message takes some statements by itself.
STEP, REDACTED = 200, 20
Kind = ImportedRow.Kind
BY_UNDO = Actor(kind=ActorKind.COMMAND)
# What restricted people have stays as it is.
FREE: Mapping[str, Any] = {"end_user__restricted_at": None, "end_user__merged_into__restricted_at": None}


def steps(work: Lease[Import], *, now: datetime) -> Iterator[None]:
    """Take everything back; yields after each transaction, which began with the renewal of the lease.

    Killed anywhere, it goes on where it was: what is done has no row of the import any more. Errors: LeaseLost.
    """
    for kind, most, act in _ACTS:
        while kind == Kind.TURNS and _learned_sections(work, now=now):
            yield
        while _step(work, kind, most, act, now):
            yield


def _step(
    work: Lease[Import], kind: str, most: int, act: Callable[[list[ImportedRow], datetime], Counter[str]], now: datetime
) -> bool:
    """Take back the next rows of a kind; False when none are left."""
    rows = list(work.row.rows.filter(kind=kind).order_by("id")[:most])
    if not rows:
        return False
    with transaction.atomic():
        done = act(rows, now)
        row = leases.fence(work)
        counts = Counter(row.counts) + done
        leases.renew(work, counts=dict(counts), position=F("position") + len(rows), attempts=0)
    return True


def _session(rows: list[ImportedRow], now: datetime) -> Counter[str]:
    """All of a session that is the import's alone, or the next messages of one that others wrote to, too."""
    [one] = rows
    same = ImportedRow.objects.filter(made_by=one.made_by_id, kind=Kind.TURNS, row=one.row)
    session = Session.objects.filter(pk=one.row).select_related("end_user", "tenant").first()
    if session is None:
        return Counter(gone=same.delete()[0])
    runs = list(same.order_by("first").values_list("first", "last"))
    own = sum(last - first + 1 for first, last in runs)
    try:
        if _is_imports_alone(session, runs, made_by=one.made_by_id):
            count = session.turn_count
            delete_session(session_id=session.pk, tenant=None, actor=BY_UNDO, now=now, expected_turns=count)
            same.delete()
            return Counter(messages_undone=own)
        _put_branches_back(session, one)
        return _redact(one, now)
    except PreconditionFailed:
        # Somebody went on with it after our look; the next one sees that.
        return Counter()
    except (NotFound, PersonRestricted):
        same.delete()
        return Counter(kept=own)


def _is_imports_alone(session: Session, runs: list[tuple[int, int]], *, made_by: uuid.UUID) -> bool:
    """Whether nobody else said anything in it, nor had before what was deleted since."""
    own = Q(pk__in=[])
    for first, last in runs:
        own |= Q(number__range=(first, last))
    if Turn.objects.filter(session=session).exclude(own).exists():
        return False
    if ImportedRow.objects.filter(made_by=made_by, kind=Kind.SESSION, row=session.pk).exists():
        # It came with its numbers, of which some were deleted where it comes from.
        return True
    reached = 0
    for first, last in runs:
        reached = last if first == reached + 1 else reached
    return reached >= session.deleted_number


def _put_branches_back(session: Session, one: ImportedRow) -> None:
    """The branch that the import left is shown again, and the one that it took back is not."""
    turns = Turn.objects.filter(session=session)
    moved = ImportedRow.objects.filter(
        made_by=one.made_by_id, kind__in=[Kind.LEFT, Kind.BACK], row__in=turns.values("pk")
    )
    left = turns.filter(pk__in=moved.filter(kind=Kind.LEFT).values("row")).exclude(left_at=None)
    back = turns.filter(pk__in=moved.filter(kind=Kind.BACK).values("row"), left_at=None)
    queue = locked_queue(
        session.tenant,
        user_id=session.end_user.external_id,
        session_id=session.external_id,
        agent_id=session.agent_id,
    )
    if queue and (left or back):
        branches.change(queue.session, left=list(back), back=list(left))
    moved.delete()


def _branches(rows: list[ImportedRow], _now: datetime) -> Counter[str]:
    """Those of a session of which the import showed another branch, and stored no message."""
    [one] = rows
    turn = Turn.objects.filter(pk=one.row).select_related("session__end_user", "session__tenant").first()
    if turn and not turn.session.end_user.restricted_at:
        _put_branches_back(turn.session, one)
    _forget(rows)
    return Counter()


def _redact(one: ImportedRow, now: datetime) -> Counter[str]:
    end = min(one.last, one.first + REDACTED - 1)
    turns = Turn.objects.filter(session=one.row, number__gte=one.first, number__lte=end, redacted_at=None)
    found = list(turns.order_by("number").values_list("pk", flat=True))
    for turn in found:
        redact_turn(turn_id=turn, tenant=None, actor=BY_UNDO, now=now)
    if end == one.last:
        one.delete()
    else:
        ImportedRow.objects.filter(pk=one.pk).update(first=end + 1)
    return Counter(messages_undone=len(found))


def _facts(rows: list[ImportedRow], now: datetime) -> Counter[str]:
    """Facts that are as they were stored; one that somebody said since rests on that, too, and stays."""
    # Those of a hub's own export came with a version.
    versions = {one.row: one.last or 1 for one in rows}
    kept_there = {one.row for one in rows if one.last}
    ids = list(versions)
    _lock_people(Fact.objects.filter(pk__in=ids))
    locked = Fact.objects.select_for_update(of=("self",)).filter(pk__in=ids)
    list(locked.order_by("pk").values_list("pk"))
    said = Exists(FactEvidence.objects.filter(fact=OuterRef("pk")))
    facts = Fact.objects.filter(pk__in=ids)
    alone = facts.filter(~said, **FREE).values_list("pk", "end_user", "status", "version", "binding", "locked")
    going = [
        (pk, person, status)
        for pk, person, status, version, *held in alone
        # What an operator keeps has another version; that of an export may have been kept there.
        if version == versions[pk] and (pk in kept_there or not any(held))
    ]
    found = [pk for pk, *_ in going]
    review_items.detach_conflicts(found)
    tenant = rows[0].made_by.tenant
    if outbox.is_wanted(tenant, Event.FACT_FORGOTTEN):
        used = [(pk, person) for pk, person, status in going if status == Status.ACTIVE]
        outbox.facts_gone(tenant, used, now=now)
    kept = facts.exclude(pk__in=found).exclude(status=Status.TRASHED).count()
    Fact.objects.filter(pk__in=found).delete()
    _forget(rows)
    return Counter(facts_undone=len(found), kept=kept)


def _sections(rows: list[ImportedRow], now: datetime) -> Counter[str]:
    done = Counter[str]()
    _lock_people(ProfileSection.objects.filter(pk__in=[one.row for one in rows]))
    for one in reversed(rows):
        sections = ProfileSection.objects.select_for_update(of=("self",)).select_related("end_user__tenant")
        section = sections.filter(pk=one.row).first()
        wrote = ProfileRevision.objects.of(section).filter(version=one.last).first() if section else None
        is_free = section is not None and not section.end_user.restricted_at
        if section and is_free and wrote and section.version == one.last:
            changes = Changes(actor=BY_UNDO, now=now)
            put_back_section(section, wrote, "undo", changes)
            done["sections_undone"] += 1
        else:
            done["kept"] += bool(section)
    _forget(rows)
    return done


def _files(rows: list[ImportedRow], _now: datetime) -> Counter[str]:
    files = MemoryFile.objects.filter(pk__in=[one.row for one in rows])
    _lock_people(files)
    versions = {one.row: one.last or 1 for one in rows}
    kept_there = {one.row for one in rows if one.last}
    free = files.filter(**FREE).select_for_update(of=("self",)).values_list("pk", "version", "locked")
    going = [pk for pk, version, locked in free if version == versions[pk] and (pk in kept_there or not locked)]
    kept = files.exclude(pk__in=going).filter(trashed_at=None).count()
    MemoryFile.objects.filter(pk__in=going).delete()
    _forget(rows)
    return Counter(files_undone=len(going), kept=kept)


def _items(rows: list[ImportedRow], _now: datetime) -> Counter[str]:
    wanted = Q(pk__in=[])
    for one in rows:
        wanted |= Q(pk=one.row, updated_at=one.at)
    going = list(StoreItem.objects.select_for_update(of=("self",)).filter(wanted, **FREE).values_list("pk", flat=True))
    kept = StoreItem.objects.filter(pk__in=[one.row for one in rows]).exclude(pk__in=going).count()
    StoreItem.objects.filter(pk__in=going).delete()
    _forget(rows)
    return Counter(items_undone=len(going), kept=kept)


def _learned_sections(work: Lease[Import], *, now: datetime) -> bool:
    """Take sections of the profile back to what they said before the import's conversations were read, a section a
    transaction, and what was proposed for them; False when none are left. Those that somebody, or another conversation,
    wrote since stay."""
    sessions = work.row.rows.filter(kind=Kind.TURNS).values("row")
    learned = Q(extraction__session__in=sessions)
    with transaction.atomic():
        row = (
            ProfileSection.objects.filter(learned, binding=False, actor_kind=ActorKind.RUN, **FREE)
            .exclude(summary="")
            .order_by("pk")
            .first()
        )
        proposed = ProfileRevision.objects.filter(learned, version=None, **FREE)
        open_ones = ReviewItem.objects.waiting().filter(proposed_section__in=proposed.values("pk"))
        asked = list(open_ones.values_list("proposed_section", flat=True)[:STEP])
        if row is None and not asked:
            return False
        done = Counter[str]()
        if row:
            _lock_people(ProfileSection.objects.filter(pk=row.pk))
            done["sections_undone"] += _take_section_back(row.pk, learned, now=now)
        ProfileRevision.objects.filter(pk__in=asked, version=None).delete()
        done["waiting_undone"] += len(asked)
        counts = Counter(leases.fence(work).counts) + done
        leases.renew(work, counts=dict(counts), attempts=0)
    return True


def _take_section_back(section_id: uuid.UUID, learned: Q, *, now: datetime) -> int:
    sections = ProfileSection.objects.select_for_update(of=("self",)).select_related("end_user__tenant")
    row = sections.filter(learned, pk=section_id, binding=False, actor_kind=ActorKind.RUN).first()
    if row is None:
        # Somebody changed it after our look; the next one sees that.
        return 0
    ours = set(ProfileRevision.objects.of(row).filter(learned).values_list("pk", flat=True))
    first: ProfileRevision | None = None
    for revision in ProfileRevision.objects.of(row).exclude(version=None).order_by("-version"):
        if revision.pk not in ours:
            break
        first = revision
    changes = Changes(actor=BY_UNDO, now=now)
    if first:
        put_back_section(row, first, "undo", changes)
    else:
        empty_some(ProfileSection.objects.filter(pk=row.pk), changes)
    # One that said the same before is as it was, and rests on nothing of the import.
    ProfileSection.objects.filter(learned, pk=row.pk).update(extraction=None)
    return 1


def _emptied_sessions(rows: list[ImportedRow], now: datetime) -> Counter[str]:
    """Sessions that came without a message, or whose messages are gone."""
    ids = [one.row for one in rows]
    said = Exists(Turn.objects.filter(session=OuterRef("pk")))
    for session in Session.objects.filter(~said, pk__in=ids, **FREE):
        try:
            delete_session(
                session_id=session.pk, tenant=None, actor=BY_UNDO, now=now, expected_turns=session.turn_count
            )
        except (NotFound, PersonRestricted, PreconditionFailed):
            # Somebody went on with it, or deleted it, after our look.
            continue
    _forget(rows)
    return Counter()


def _refusals(rows: list[ImportedRow], _now: datetime) -> Counter[str]:
    """They are numbered."""
    refusals = FactRefusal.objects.filter(pk__in=[one.row.int for one in rows], **FREE)
    _lock_people(refusals)
    refusals.delete()
    _forget(rows)
    return Counter()


def _asked(rows: list[ImportedRow], _now: datetime) -> Counter[str]:
    """Texts of sections that nobody has decided about; they go with their question."""
    asked = ProfileRevision.objects.filter(pk__in=[one.row for one in rows], version=None, **FREE)
    _lock_people(asked)
    decided = ReviewItem.objects.exclude(state=ReviewItem.State.OPEN).filter(proposed_section=OuterRef("pk"))
    going = list(asked.exclude(Exists(decided)).values_list("pk", flat=True))
    ProfileRevision.objects.filter(pk__in=going).delete()
    _forget(rows)
    return Counter(waiting_undone=len(going))


def _profiles(rows: list[ImportedRow], _now: datetime) -> Counter[str]:
    """Sections that came with their history: it goes, and stays, with them."""
    versions = {one.row: one.last for one in rows}
    sections = ProfileSection.objects.filter(pk__in=versions)
    _lock_people(sections)
    locked = list(sections.select_for_update(of=("self",)).order_by("pk"))
    free = set(sections.filter(**FREE).values_list("pk", flat=True))
    going = [one for one in locked if one.pk in free and one.version == versions[one.pk]]
    kept = [one for one in locked if one not in going]
    for one in kept:
        history = ProfileRevision.objects.of(one).values("pk")
        ImportedRow.objects.filter(made_by=rows[0].made_by_id, kind=Kind.HISTORY, row__in=history).delete()
    ProfileSection.objects.filter(pk__in=[one.pk for one in going]).delete()
    _forget(rows)
    return Counter(sections_undone=len(going), kept=len(kept))


def _triples(rows: list[ImportedRow], _now: datetime) -> Counter[str]:
    versions = {one.row: one.last for one in rows}
    triples = GraphTriple.objects.filter(pk__in=versions)
    _lock_people(triples)
    locked = triples.filter(**FREE).select_for_update(of=("self",)).values_list("pk", "version")
    going = [pk for pk, version in locked if version == versions[pk]]
    kept = triples.exclude(pk__in=going).filter(trashed_at=None).count()
    GraphTriple.objects.filter(pk__in=going).delete()
    _forget(rows)
    return Counter(relations_undone=len(going), kept=kept)


def _entities(rows: list[ImportedRow], _now: datetime) -> Counter[str]:
    """Those that no triple names any more."""
    entities = GraphEntity.objects.filter(pk__in=[one.row for one in rows], **FREE)
    _lock_people(entities)
    named = Q(subject=OuterRef("pk")) | Q(object=OuterRef("pk"))
    entities.exclude(Exists(GraphTriple.objects.filter(named))).delete()
    _forget(rows)
    return Counter()


def _said_in_groups(rows: list[ImportedRow], _now: datetime) -> Counter[str]:
    """Facts of groups that nobody else said, too."""
    people_of = [one.end_user_id for one in rows if one.end_user_id]
    facts = GroupFact.objects.filter(pk__in=[one.row for one in rows])
    list(MemoryGroup.objects.select_for_update().filter(pk__in=facts.values("group")).order_by("pk").values_list("pk"))
    others = GroupEvidence.objects.filter(fact=OuterRef("pk")).exclude(end_user__in=people_of)
    restricted = EndUser.objects.filter(pk__in=people_of).exclude(restricted_at=None)
    held = GroupEvidence.objects.filter(fact=OuterRef("pk"), end_user__in=restricted)
    going = list(facts.exclude(Exists(others)).exclude(Exists(held)).values_list("pk", flat=True))
    kept = facts.exclude(pk__in=going).count()
    GroupFact.objects.filter(pk__in=going).delete()
    _forget(rows)
    return Counter(in_groups_undone=len(going), kept=kept)


def _groups(rows: list[ImportedRow], _now: datetime) -> Counter[str]:
    """Groups without anybody and anything."""
    groups = MemoryGroup.objects.filter(pk__in=[one.row for one in rows])
    list(groups.select_for_update().order_by("pk").values_list("pk"))
    inside = (model.objects.filter(group=OuterRef("pk")) for model in (GroupMember, GroupFact))
    for one in inside:
        groups = groups.exclude(Exists(one))
    groups.delete()
    _forget(rows)
    return Counter()


def _told(rows: list[ImportedRow], _now: datetime) -> Counter[str]:
    """Episodes went with the messages that they tell of."""
    _forget(rows)
    return Counter()


def _delete_all(name: str, *models: Any) -> Callable[[list[ImportedRow], datetime], Counter[str]]:
    """Of rows of these models, which nobody can change; `name`: as they are counted, if they are."""

    def act(rows: list[ImportedRow], _now: datetime) -> Counter[str]:
        counts = Counter[str]()
        of_models = [model._default_manager.filter(pk__in=[one.row for one in rows]) for model in models]
        _lock_people(*of_models)
        for found in of_models:
            going = list(found.filter(**FREE).values_list("pk", flat=True))
            counts.update({f"{name}_undone": len(going), "kept": found.exclude(pk__in=going).count()})
            found.filter(pk__in=going).delete()
        _forget(rows)
        return counts if name else Counter()

    return act


def _lock_people(*rows: Any) -> None:
    """In the order of everybody else: people first."""
    theirs = reduce(or_, (Q(pk__in=some.values("end_user")) for some in rows))
    people = EndUser.objects.select_for_update(of=("self",), no_key=True).filter(theirs)
    list(people.order_by("pk").values_list("pk"))


def _forget(rows: list[ImportedRow]) -> None:
    ImportedRow.objects.filter(pk__in=[one.pk for one in rows]).delete()


# In this order: what rests on a row goes before it, and people last.
_ACTS: Sequence[tuple[Kind, int, Callable[[list[ImportedRow], datetime], Counter[str]]]] = (
    (Kind.REFUSAL, STEP, _refusals),
    (Kind.ASKED, STEP, _asked),
    (Kind.TURNS, 1, _session),
    (Kind.LEFT, 1, _branches),
    (Kind.BACK, 1, _branches),
    (Kind.SESSION, STEP, _emptied_sessions),
    (Kind.EPISODE, STEP, _told),
    (Kind.FACT, STEP, _facts),
    (Kind.SECTION, STEP, _sections),
    (Kind.PROFILE, STEP, _profiles),
    (Kind.HISTORY, STEP, _delete_all("", ProfileRevision)),
    (Kind.FILE, STEP, _files),
    (Kind.ITEM, STEP, _items),
    # Of all plain kinds (memories/kinds/kind.py).
    (Kind.DIARY, STEP, _delete_all("diary", *(kind.model for kind in PLAIN))),
    (Kind.TRIPLE, STEP, _triples),
    (Kind.ENTITY, STEP, _entities),
    (Kind.SAID, STEP, _said_in_groups),
    (Kind.MEMBER, STEP, _delete_all("", GroupMember)),
    (Kind.GROUP, STEP, _groups),
    (Kind.RECORD, STEP, people.put_records_back),
    (Kind.PERSON, STEP, people.take_back),
)
