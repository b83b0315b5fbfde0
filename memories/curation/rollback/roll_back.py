"""Roll back what came of a session, an agent, a key or a time: one change set, which reverting.revert() takes back."""

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any

from django.db import transaction
from django.db.models import F, Min, OuterRef, Q, QuerySet, Subquery

from memories import audit
from memories.audit import Actor
from memories.curation.change_sets import Changes, steps
from memories.curation.people.errors import PersonMerged
from memories.curation.profile.sections import trust_of
from memories.curation.review import item_states
from memories.curation.rollback import files, groups, patterns, plain, triples
from memories.curation.rollback.selection import (
    ID_IN_CHANGES,
    NEUTRAL,
    ROLL_BACK,
    UNDO,
    Selector,
    counted,
    read_by_dreams,
    revisions,
    section_revisions,
    touched,
    touched_files,
    touched_sections,
    touched_statements,
)
from memories.facts import review_items
from memories.models import (
    Change,
    ChangeSet,
    Dream,
    EndUser,
    Fact,
    FactEvidence,
    FactRevision,
    FileVersion,
    GroupEvidence,
    ProfileRevision,
    ProfileSection,
    Status,
)
from memories.models.ids import parse_uuid

Table, Action = Change.Table, Change.Action
EXAMPLES = 10


@dataclass(frozen=True)
class RollbackPreview:
    """What a roll back would do now, with the newest facts of each kind."""

    counts: dict[str, int]
    trashed: list[Fact]
    put_back: list[Fact]
    kept: list[Fact]

    @property
    def changes_nothing(self) -> bool:
        return not any(count for name, count in self.counts.items() if name != "kept")


def preview_rollback(selector: Selector) -> RollbackPreview:
    """Counts and examples; nothing is changed, and what happens meanwhile still changes them.

    A fact that another one has replaced by now counts as put back here; roll_back() will keep it.
    """
    facts, sections, written = touched(selector), touched_sections(selector), touched_files(selector)
    kinds = {
        "trashed": facts.filter(stays=False, base=0),
        "put_back": facts.filter(stays=False, base__gt=0),
        "kept": facts.filter(stays=True),
    }
    counts = {name: rows.count() for name, rows in kinds.items()}
    counts["sections"] = sections.filter(stays=False).count()
    counts["files"] = written.filter(stays=False).count()
    counts |= plain.counts(selector)
    counts["group_facts"] = touched_statements(selector).count()
    counts["patterns"] = patterns.count(selector)
    counts["dreams"] = Dream.objects.doubtful(read_by_dreams(selector)).count()
    of_graph = triples.counts(selector)
    counts["triples"] = of_graph["triples"]
    counts["kept"] += sections.filter(stays=True).count() + written.filter(stays=True).count() + of_graph["kept"]
    return RollbackPreview(
        counts, **{name: list(rows.order_by("-created_at", "-id")[:EXAMPLES]) for name, rows in kinds.items()}
    )


def roll_back(*, selector: Selector, actor: Actor, now: datetime, reason: str = "") -> Changes:
    """Take back what the selected runs, or the key, made of memories; for operators and commands.

    A fact, triple, file or note of an agent that they made, and what they stated in groups, goes to the trash and is
    not refused: it may honestly be said again. One that they only changed gets back what it was before. An operator's
    word, and what somebody else changed since, stays and is counted; so does all evidence, but that of patterns that
    wait, which go without any. Of facts and sections, what stays because of somebody whose changes are rolled back
    later is taken back then. An extraction of these sessions that is in flight, or comes later, makes new facts: delete
    the session, or roll back once more.
    """
    changes = Changes(actor=actor, now=now, reason=reason)
    with transaction.atomic():
        people, facts, waiting = _lock(selector)
        kept = touched(selector).filter(stays=True).count()
        changes.counts.update(trashed=0, put_back=0, sections=0, files=0, triples=0, kept=kept)
        bases = dict(touched(selector).filter(stays=False).values_list("pk", "base"))
        sections = list(touched_sections(selector).select_related("end_user"))
        _note(revisions(selector).filter(fact__in=facts), changes)
        _note(section_revisions(selector), changes)
        changed = _apply_bases(bases, ROLL_BACK, changes)
        changes.counts["trashed"] += sum(base == 0 for base in bases.values())
        changes.counts["put_back"] += sum(bases[pk] > 0 for pk in changed)
        changes.counts["kept"] += len(bases.keys() - changed)
        # What earlier roll backs could not take back, because something that goes now was in its place.
        changed |= (again := _apply_bases(_bases(waiting), ROLL_BACK, changes))
        changes.counts["put_back"] += len(again)
        for ids in steps([pk for pk, base in bases.items() if base == 0]):
            _join_again(ids, changed, changes)
        for row in sections:
            changes.counts["kept" if row.stays else "sections"] += 1
            if not row.stays:
                _put_section_back(changes, row, ROLL_BACK, row.base)
        files.roll_back(selector, changes)
        plain.roll_back(selector, changes)
        groups.roll_back(selector, changes)
        triples.roll_back(selector, changes)
        patterns.roll_back(selector, changes)
        changes.counts["dreams"] += Dream.objects.doubt(read_by_dreams(selector), now=now)
        for ids in steps([*facts, *again, *changes.facts]):
            review_items.close_answered_items(ids, now=now, change_set=changes.id)
        # About one person it is deleted with them. One of a session is, unless they were erased meanwhile.
        about = people[0] if len(people) == 1 else selector.tenant
        changes.save(ROLL_BACK, about, selected=selector.as_json())
        audit.record(
            actor=actor,
            verb=ROLL_BACK,
            target=ChangeSet,
            object_id=changes.id,
            tenant=selector.tenant,
            now=now,
            counts=dict(changes.counts),
        )
    return changes


def lock_for_undo(done: ChangeSet) -> None:
    """Lock whose memories the roll back changed, or waits to change, in one order.

    Errors: PersonMerged.
    """
    facts = _concerned(done, FactRevision).values("fact__end_user")
    sections = _concerned(done, ProfileRevision).values("end_user")
    written = FileVersion.objects.filter(change_set=done.pk).values("file__end_user")
    noted = plain.people_of(done)
    spoken = GroupEvidence.objects.filter(fact__change_set=done.pk).values("end_user")
    related = triples.concerned(done).values("end_user")
    rested = Fact.objects.filter(pk__in=patterns.facts_of(done)).values("end_user")
    locked = {person.pk for person in _lock_people(facts, sections, written, *noted, spoken, related, rested)}
    # What somebody had who was merged while we waited is another person's by now.
    for owners in (
        facts.values_list("fact__end_user", flat=True),
        written.values_list("file__end_user", flat=True),
        *(rows.values_list("end_user", flat=True) for rows in noted),
        spoken.values_list("end_user", flat=True),
        related.values_list("end_user", flat=True),
        rested.values_list("end_user", flat=True),
    ):
        if not locked.issuperset(owners):
            raise PersonMerged


def settle_after_undo(done: ChangeSet, changes: Changes) -> None:
    """What a roll back that is being undone waited to take back, and what later ones took back with it, becomes what
    those that stand leave of it."""
    done.undone_at = changes.now
    done.save(update_fields=["undone_at"])
    put_back = FactRevision.objects.filter(change_set=changes.id).values("fact")
    concerned = _concerned(done, FactRevision).exclude(fact__in=put_back)
    counted_kept = set(concerned.filter(change_set=done.pk).values_list("fact", flat=True))
    waiting = _waiting(_concerned(done, FactRevision).values("fact__end_user")).exclude(pk__in=put_back)
    facts = Fact.objects.filter(pk__in=concerned.values("fact"), binding=False)
    ids = {*facts.values_list("pk", flat=True), *waiting.values_list("pk", flat=True)}
    changed = _apply_bases(_bases(sorted(ids)), UNDO, changes)
    changes.counts["put_back"] += len(changed)
    changes.counts["kept"] -= len(changed & counted_kept)
    # Facts that are back get the evidence again that roll backs moved away from them.
    moved = Change.objects.filter(table=Table.EVIDENCE, action=Action.CHANGED, change_set__verb=ROLL_BACK)
    for change in moved.filter(change_set__tenant=done.tenant_id, before__fact__in=[str(pk) for pk in changed]):
        FactEvidence.objects.filter(pk__in=[change.number]).update(fact=uuid.UUID(change.before["fact"]))
    _settle_sections(done, changes)


def _lock(selector: Selector) -> tuple[list[EndUser], list[uuid.UUID], list[uuid.UUID]]:
    """Lock everything that the roll back touches; returns the people, the ids of the facts, and those of the facts that
    wait for it.

    People come first, as in window_queue.lock_claimed(), so that no extraction commits meanwhile; then all
    facts in one order.
    """
    kinds = (
        touched,
        touched_sections,
        touched_files,
        touched_statements,
        triples.touched,
        patterns.resting,
        read_by_dreams,
    )
    named = selector.owner().values("pk")
    people = _lock_people(named, *(rows(selector).values("end_user") for rows in kinds))
    waiting = set(_waiting([person.pk for person in people]).values_list("pk", flat=True))
    wanted = Q(pk__in=touched(selector).values("pk")) | Q(pk__in=waiting)
    rows = Fact.objects.select_for_update(no_key=True).filter(wanted).order_by("pk")
    locked = list(rows.values_list("pk", flat=True))
    facts = set(touched(selector).values_list("pk", flat=True))
    return people, [pk for pk in locked if pk in facts], [pk for pk in locked if pk not in facts]


def _lock_people(*ids: QuerySet[Any, Any]) -> list[EndUser]:
    """The people of these rows, locked in one order."""
    named = reduce(or_, (Q(pk__in=some) for some in ids))
    people = EndUser.objects.select_for_update(of=("self",), no_key=True).select_related("tenant")
    return list(people.filter(named).order_by("pk"))


def _note(revised: QuerySet[Any], changes: Changes) -> None:
    """Keep which revisions the roll back takes back: at once, or when what came after them is taken back, too."""
    for pk in counted(revised).values_list("pk", flat=True):
        changes.record_row_change(Table.REVISION, Action.TAKEN, pk)


def _concerned(done: ChangeSet, model: type[Any]) -> QuerySet[Any]:
    """The revisions that the roll back wrote, and those that it takes back."""
    taken = done.changes.filter(table=Table.REVISION, action=Action.TAKEN)
    ids = [pk for pk in taken.values_list(ID_IN_CHANGES[model], flat=True) if pk]
    rows: QuerySet[Any] = model.objects.filter(Q(change_set=done.pk, version__isnull=False) | Q(pk__in=ids))
    return rows


def _waiting(people: Any) -> QuerySet[Fact]:
    """Facts of these people of which roll backs that stand took something back, or wait to."""
    taken = Change.objects.filter(table=Table.REVISION, action=Action.TAKEN, change_set__undone_at=None)
    facts = FactRevision.objects.filter(pk__in=taken.values("number"), fact__end_user__in=people).values("fact")
    return Fact.objects.filter(pk__in=facts, binding=False).exclude(status=Status.TRASHED)


def _bases(facts: Sequence[uuid.UUID]) -> dict[uuid.UUID, int]:
    """The version of each fact that the roll backs that stand leave of it; 0: nothing."""
    bases: dict[uuid.UUID, int] = {}
    for ids in steps(facts):
        own = FactRevision.objects.filter(fact__in=ids)
        first = own.order_by().values_list("fact").annotate(Min("version"))
        bases |= {fact: version - 1 for fact, version in first}
        bases |= dict(counted(own).order_by("version").values_list("fact", "version"))
    return bases


def _apply_bases(bases: Mapping[uuid.UUID, int], verb: str, changes: Changes) -> set[uuid.UUID]:
    """Make each fact what it was at this version; returns those that changed."""
    going: list[uuid.UUID] = []
    staying: dict[uuid.UUID, set[Any]] = {}
    returning: dict[uuid.UUID, set[Any]] = {}
    for fact, history in _read_with_histories(sorted(bases)):
        was, latest = (_as_of(fact, history, version, changes.now) for version in (bases[fact.pk], _last(history)))
        if was.status != Status.ACTIVE:
            going.append(fact.pk)
        else:
            # What only one active fact has.
            places: set[Any] = {(was.agent_id, bytes(was.content_hash))}
            if was.key and was.value:
                places.add((was.agent_id, was.category, was.key))
            (staying if latest.status == Status.ACTIVE else returning)[fact.pk] = places
    taken = {place for places in staying.values() for place in places}
    yielding: set[uuid.UUID] = set()
    # Of two that only roll backs make active the one that was learned last.
    for pk, places in reversed(returning.items()):
        if places & taken:
            yielding.add(pk)
        else:
            taken |= places
    # What gives up its place comes before what takes it.
    ordered = [*going, *sorted(yielding), *staying, *(pk for pk in returning if pk not in yielding)]
    changed = set()
    for fact, history in _read_with_histories(ordered):
        base = _last(history) if fact.pk in yielding else bases[fact.pk]
        if _restore(changes, fact, history, verb, base):
            changed.add(fact.pk)
    return changed


def _restore(changes: Changes, fact: Fact, history: Sequence[FactRevision], verb: str, base: int) -> bool:
    """Make the fact what it was at this version, or, if another one has taken its place by now, what it would be
    without roll backs; False when it is so already, or when another live fact has its text."""
    was, latest = (_as_of(fact, history, version, changes.now) for version in (base, _last(history)))
    if was.status == Status.ACTIVE != latest.status and _is_replaced(was, latest.superseded_by_id):
        was = latest
    state = audit.snapshot(was)
    if state == audit.snapshot(fact) or not changes.restore(fact, verb, state):
        return False
    if fact.status == Status.PENDING:
        item_states.wait_again(fact, now=changes.now)
    return True


def _read_with_histories(facts: Sequence[uuid.UUID]) -> Iterator[tuple[Fact, list[FactRevision]]]:
    """The facts in this order, each with its revisions, the last one first."""
    for ids in steps(facts):
        rows = Fact.objects.filter(pk__in=ids).select_related("tenant", "end_user").order_by("pk")
        read = {fact.pk: fact for fact in rows}
        histories: dict[uuid.UUID, list[FactRevision]] = {pk: [] for pk in read}
        for revision in FactRevision.objects.filter(fact__in=read).defer("after").order_by("-version"):
            histories[revision.fact_id].append(revision)
        yield from ((read[pk], histories[pk]) for pk in ids if pk in read)


def _last(history: Sequence[FactRevision]) -> int:
    """The version of the last change that is neither a roll back nor its undoing."""
    others = (revision.version for revision in history if revision.verb not in NEUTRAL)
    return next(others, history[0].version if history else 1)


def _as_of(fact: Fact, history: Sequence[FactRevision], version: int, now: datetime) -> Fact:
    """The fact as it was at this version; before its first one, in the trash."""
    was = copy(fact)
    if version == 0:
        was.status, was.trashed_at = Status.TRASHED, fact.trashed_at or now
        return was
    later = [revision.before for revision in history if revision.version > version]
    audit.restore_state(was, {name: value for before in later for name, value in before.items()})
    return was


def _is_replaced(fact: Fact, successor: uuid.UUID | None) -> bool:
    """Whether its successor is still active, or another active fact has a value for its key by now."""
    active = Fact.objects.of(fact.tenant, fact.end_user).filter(status=Status.ACTIVE).exclude(pk=fact.pk)
    rivals = Q(agent_id=fact.agent_id, category=fact.category, key=fact.key) if fact.key and fact.value else Q()
    in_place = Q(pk=successor) | rivals if successor else rivals
    return bool(in_place) and active.filter(in_place).exists()


def _join_again(made: Sequence[uuid.UUID], put_back: Collection[uuid.UUID], changes: Changes) -> None:
    """Give a fact that a run had split its evidence back: the split moved it to the earlier part, which is gone now."""
    # A fact is never older than its own evidence, unless it got that from another.
    begun = FactRevision.objects.filter(fact=OuterRef("fact"), version=1)
    rows = FactEvidence.objects.filter(fact__in=made).annotate(begun=Subquery(begun.values("created_at")[:1]))
    moved = list(rows.filter(created_at__lt=F("begun")).order_by("pk").values_list("pk", "fact", "turn"))
    wholes = {part: _split_from(part, put_back) for _row, part, _turn in moved}
    for row, part, turn in moved:
        whole = wholes[part]
        # What cites the turn already needs it no second time.
        if whole and not FactEvidence.objects.filter(fact=whole, turn=turn, turn__isnull=False).exists():
            FactEvidence.objects.filter(pk=row).update(fact=whole)
            changes.record_row_change(Change.Table.EVIDENCE, Change.Action.CHANGED, row, before={"fact": str(part)})


def _split_from(part: uuid.UUID, put_back: Collection[uuid.UUID]) -> uuid.UUID | None:
    """The fact of these that the part was split from: what came between the two names it as its successor."""
    seen = {part}
    while True:
        between = _successor_at_first(part)
        whole = _successor_at_first(between) if between else None
        if whole is None or whole in put_back or whole in seen:
            return whole if whole in put_back else None
        # It was itself split off before.
        seen.add(whole)
        part = whole


def _successor_at_first(fact: uuid.UUID) -> uuid.UUID | None:
    """What its first version names as its successor."""
    after = FactRevision.objects.filter(fact=fact, version=1).values_list("after", flat=True).first() or {}
    return parse_uuid(after.get("superseded_by") or "")


def _settle_sections(done: ChangeSet, changes: Changes) -> None:
    """Make the sections that the undo has not put back what the roll backs that stand leave of them."""
    named = ("end_user_id", "agent_id", "section")
    for of in _concerned(done, ProfileRevision).order_by(*named).values(*named).distinct():
        own = ProfileRevision.objects.filter(**of, version__isnull=False)
        rows = ProfileSection.objects.select_for_update(of=("self",)).select_related("end_user")
        row = rows.filter(**of, binding=False).first()
        if row is None or own.filter(change_set=changes.id).exists():
            continue
        base = counted(own).values_list("version", flat=True).first() or 0
        if _put_section_back(changes, row, UNDO, base):
            changes.counts["sections"] += 1
            changes.counts["kept"] -= own.filter(change_set=done.pk).exists()


def _put_section_back(changes: Changes, row: Any, verb: str, base: int) -> bool:
    """Give the section the text that it had at this version; before its first one it is empty. False: it has it."""
    later = ProfileRevision.objects.of(row).filter(version__gt=base).order_by("version")
    before, text = copy(row), later.values_list("before", flat=True).first()
    if text is None or text == row.summary:
        return False
    row.summary = text
    row.actor_kind, row.extraction, row.prompt_version = changes.actor.kind, None, ""
    row.trust, row.evidence = trust_of(row), []
    changes.revise_section(row, verb, before)
    return True
