"""Takes back what an import stored, some of it in each transaction, and says what stays because it was changed since.

What goes is deleted, not moved to the trash: the file can be imported again, perhaps for another person. A session that
is the import's alone goes whole, with what was made of it; of others the imported messages are redacted.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q

from memories import outbox
from memories.audit import Actor
from memories.capture import branches
from memories.capture.session_rows import locked_queue
from memories.curation.change_sets import Changes
from memories.curation.profile.sections import put_back_section
from memories.curation.sessions import delete_session
from memories.curation.turns import redact_turn
from memories.exceptions import NotFound, PersonRestricted, PreconditionFailed
from memories.facts import review_items
from memories.models import (
    ActorKind,
    EndUser,
    Event,
    Fact,
    FactEvidence,
    Import,
    ImportedRow,
    MemoryFile,
    ProfileRevision,
    ProfileSection,
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
    acts: Mapping[str, Callable[[list[ImportedRow], datetime], Counter[str]]] = {
        Kind.FACT: _facts, Kind.SECTION: _sections, Kind.FILE: _files, Kind.ITEM: _items,
    }  # fmt: skip
    while _step(work, Kind.TURNS, 1, _session, now):
        yield
    for moved in (Kind.LEFT, Kind.BACK):
        while _step(work, moved, 1, _branches, now):
            yield
    for kind, act in acts.items():
        while _step(work, kind, STEP, act, now):
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
    own = sum(last - first + 1 for first, last in same.values_list("first", "last"))
    try:
        if session.turn_count == own and not session.deleted_number:
            delete_session(session_id=session.pk, tenant=None, actor=BY_UNDO, now=now, expected_turns=own)
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
    ids = [one.row for one in rows]
    _lock_people(Fact.objects.filter(pk__in=ids))
    locked = Fact.objects.select_for_update(of=("self",)).filter(pk__in=ids)
    list(locked.order_by("pk").values_list("pk"))
    said = Exists(FactEvidence.objects.filter(fact=OuterRef("pk")))
    facts = Fact.objects.filter(pk__in=ids)
    free = facts.filter(~said, version=1, binding=False, locked=False, **FREE)
    going = list(free.values_list("pk", "end_user", "status", "tenant"))
    found = [pk for pk, *_ in going]
    review_items.detach_conflicts(found)
    tenant = rows[0].made_by.tenant
    if outbox.is_wanted(tenant, Event.FACT_FORGOTTEN):
        used = [(pk, person) for pk, person, status, _tenant in going if status == Status.ACTIVE]
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
    free = files.filter(version=1, locked=False, **FREE)
    going = list(free.select_for_update(of=("self",)).values_list("pk", flat=True))
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


def _lock_people(rows: Any) -> None:
    """In the order of everybody else: people first."""
    people = EndUser.objects.select_for_update(of=("self",), no_key=True).filter(pk__in=rows.values("end_user"))
    list(people.order_by("pk").values_list("pk"))


def _forget(rows: list[ImportedRow]) -> None:
    ImportedRow.objects.filter(pk__in=[one.pk for one in rows]).delete()
