"""Takes a change set back, whatever it was: a decision, an edit, a step of a batch, a merge, a section, a roll back.

A row is as the change set left it if it has the version that it had then. A change that was itself reverted since does
not count. A revert is a change set, too; it is not reverted again: who wants the change back makes it anew.
"""

import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Max, Min, QuerySet
from django.utils.translation import gettext as _

from memories import audit
from memories.audit import Actor
from memories.curation import episodes, running_summaries, turn_authors
from memories.curation.change_sets import KEPT_OF_KEYS, Changes, steps
from memories.curation.facts.changing import check_no_rival, own_rivals
from memories.curation.graph import taking_back
from memories.curation.people import external_ids
from memories.curation.people.merging import undo as merging
from memories.curation.people.merging.locks import retry_when_locked
from memories.curation.people.merging.merge import MERGE
from memories.curation.profile.sections import put_back_section
from memories.curation.review import item_states
from memories.curation.rollback import files, groups, patterns, plain, roll_back, selection
from memories.curation.writing import lock_person
from memories.exceptions import Conflict, NotFound
from memories.models import (
    ActorKind,
    Change,
    ChangeSet,
    EndUser,
    Episode,
    Fact,
    FactEvidence,
    FactRefusal,
    FactRelation,
    FactRevision,
    FileVersion,
    ProfileRevision,
    ProfileSection,
    ReviewItem,
    Status,
    Tenant,
)
from memories.verbs import VERBS, undone_of

Table, Action = Change.Table, Change.Action


def _person_of(done: ChangeSet) -> uuid.UUID | None:
    return done.end_user_id or getattr(done.about, "end_user_id", None)


def _in_transaction(act: Callable[[], Counter[str]]) -> Counter[str]:
    with transaction.atomic():
        return act()


@dataclass(frozen=True)
class RevertRule:
    """What the revert of a verb heeds, and what it is called."""

    # No other fact may have taken the key of one that becomes active again; with `keeps_later` that one stays gone.
    no_rival: bool = False
    # What changed since stays as it is and is counted; else it forbids the revert.
    keeps_later: bool = False
    # In the audit trail; and the verb of the revisions.
    event: str = "undo"
    verb: str = "undo"
    # Locks whose rows they are, in the order of the people's ids. Errors: why they cannot be changed now.
    lock: Callable[[ChangeSet], object] = lambda done: lock_person(_person_of(done))
    # Runs the revert in its transaction.
    run: Callable[[Callable[[], Counter[str]]], Counter[str]] = _in_transaction
    # What else there is to do before the rows become what they were, and then.
    begin: Callable[[ChangeSet, Changes], None] | None = None
    finish: Callable[[ChangeSet, Changes], None] | None = None
    # What the audit events are about.
    audited: Callable[[ChangeSet], Iterable[Any]] = lambda done: (done.about,)


# What change sets about an object of this class name: itself, or its person.
_ABOUT: Mapping[str, type[Any]] = {
    "Episode": Episode,
    "Fact": Fact,
    "GraphEntity": EndUser,
    "GraphTriple": EndUser,
    "ProfileSection": EndUser,
    "ReviewItem": ReviewItem,
}
_ROLL_BACK = RevertRule(
    keeps_later=True,
    event=selection.UNDO,
    verb=selection.UNDO,
    lock=roll_back.lock_for_undo,
    finish=roll_back.settle_after_undo,
    audited=lambda done: (done,),
)
# By what a change set is about, and its verb: the usual rule of what memories/verbs.py calls `undone`, then others.
# Nothing else can be reverted.
RULES: Mapping[tuple[type[Any], str], RevertRule] = {
    **{(_ABOUT[kind], name): RevertRule() for name, verb in VERBS.items() for kind in verb.undone},
    # After the others of a fact it says something else, or is served again.
    **{(Fact, verb): RevertRule(no_rival=True) for verb in undone_of("Fact") - {"approve", "reconsider", "reject"}},
    (Fact, "merge"): RevertRule(no_rival=True, event="undo_merge"),
    (EndUser, running_summaries.REWRITE): RevertRule(
        lock=running_summaries.lock_for_undo, finish=running_summaries.put_summaries_back
    ),
    (EndUser, turn_authors.CORRECT): RevertRule(
        lock=turn_authors.lock_for_undo, finish=turn_authors.put_authors_back, audited=turn_authors.turns_of
    ),
    **{(EndUser, verb): RevertRule(no_rival=True, keeps_later=True) for verb in KEPT_OF_KEYS},
    (EndUser, "change_id"): RevertRule(
        keeps_later=True, lock=external_ids.lock_for_undo, finish=external_ids.restore_ids
    ),
    (EndUser, MERGE): RevertRule(
        keeps_later=True,
        event="undo_merge",
        lock=merging.lock_for_undo,
        run=retry_when_locked,
        begin=merging.separate,
        finish=merging.finish,
        audited=lambda done: (done.end_user, done.merged, done),
    ),
    **{(about, selection.ROLL_BACK): _ROLL_BACK for about in (EndUser, Tenant)},
}


def revert(*, change_set: uuid.UUID, actor: Actor, now: datetime, reason: str = "") -> Mapping[str, int]:
    """Put everything back that the change set changed; returns counts of it.

    Of most verbs nothing may have changed since. Of a merge of people, a roll back, a clearing and a changed id, what
    has changed since stays and is counted as `kept`.

    Review items that it closed are open again. Errors: NotFound; Conflict (reverted already, changed since, or the
    verb's rule forbids it); DuplicateFact; those of the rule's lock.
    """
    seen = _find(change_set)
    rule = RULES.get((type(seen.about), seen.verb))
    if seen.undone_at or rule is None:
        raise Conflict(_("There is nothing to undo. Somebody has already undone this."))
    return rule.run(lambda: _revert(seen, rule, Changes(actor=actor, now=now, reason=reason)))


def _revert(seen: ChangeSet, rule: RevertRule, changes: Changes) -> Counter[str]:
    rule.lock(seen)
    # Under the locks: of two who revert it the second finds it reverted, and who edits one of the rows comes before or
    # after. Somebody may have erased its person while we waited.
    done = _find(seen.pk, lock=True)
    if done.undone_at:
        raise Conflict(_("There is nothing to undo. Somebody has already undone this."))
    changes.counts.update(put_back=0, sections=0, kept=0)
    _put_rows_back(done)
    if rule.begin:
        rule.begin(done, changes)
    facts = _put_facts_back(done, rule, changes)
    _put_evidence_back(done, facts)
    _put_sections_back(done, rule, changes)
    _put_episodes_back(done, rule, changes)
    files.restore(done, changes, lambda file, left: _is_at(left, file.version, FileVersion.objects.filter(file=file)))
    plain.restore(done, changes)
    groups.restore(done, changes)
    patterns.restore(done)
    taking_back.put_triples_back(done, changes, _is_at, keeps_later=rule.keeps_later)
    if rule.no_rival and not rule.keeps_later:
        rivals = Fact.objects.filter(pk__in=facts).select_related("tenant", "end_user")
        check_no_rival(list(rivals), now=changes.now)
    if rule.finish:
        rule.finish(done, changes)
    _reopen_items(done, facts, changes)
    changes.save(rule.event, done.about)
    for target in rule.audited(done):
        audit.record(
            actor=changes.actor,
            verb=rule.event,
            target=target,
            object_id=target.pk,
            tenant=done.tenant,
            now=changes.now,
            counts=dict(changes.counts) if rule.keeps_later else None,
        )
    done.undone_at, done.reverted_by = changes.now, changes.id
    done.save(update_fields=["undone_at", "reverted_by"])
    return changes.counts


def _find(change_set: uuid.UUID, *, lock: bool = False) -> ChangeSet:
    """Errors: NotFound."""
    about = ("tenant", "item", "fact", "episode", "end_user", "merged")
    rows = ChangeSet.objects.filter(pk=change_set).select_related(*about)
    found = (rows.select_for_update(of=("self",), no_key=True) if lock else rows).first()
    if found is None:
        raise NotFound
    return found


def _put_facts_back(done: ChangeSet, rule: RevertRule, changes: Changes) -> Collection[uuid.UUID]:
    """Make the facts that it changed what they were before; returns their ids.

    Errors: Conflict when one has changed since, or was deleted; DuplicateFact.
    """
    history = FactRevision.objects.all()
    revisions = history.filter(change_set=done.pk).order_by("-id")
    left = dict(revisions.order_by().values_list("fact").annotate(Max("version")))
    left |= dict(done.changes.filter(table=Table.FACT, action=Action.LEFT).values_list("uuid", "version"))
    locked = Fact.objects.select_for_update(of=("self",), no_key=True).filter(pk__in=left).order_by("pk")
    versions = dict(locked.values_list("pk", "version"))
    same = {pk for pk, version in versions.items() if _is_at(left[pk], version, history.filter(fact=pk))}
    if not rule.keeps_later and len(same) != done.counts.get("facts", len(left)):
        raise Conflict(_("This can no longer be undone, because one of its facts has changed since."))
    changes.counts["kept"] += len(versions) - len(same)
    # The last change first: of two facts with one text only one is live at a time.
    for some in steps(list(revisions.values_list("pk", flat=True))):
        rows = list(revisions.filter(pk__in=some))
        facts = Fact.objects.select_related("tenant", "end_user").in_bulk({row.fact_id for row in rows} & same)
        for revision in rows:
            if fact := facts.get(revision.fact_id):
                _put_fact_back(fact, revision, rule, changes, together=same)
    return same


def _put_evidence_back(done: ChangeSet, facts: Collection[uuid.UUID]) -> None:
    """Give facts that are put back, and locked, the evidence that it took from them."""
    for change in done.changes.filter(table=Table.EVIDENCE, action=Action.CHANGED):
        fact = uuid.UUID(change.before["fact"])
        if fact in facts:
            FactEvidence.objects.filter(pk__in=[change.number]).update(fact=fact)


def _put_fact_back(
    fact: Fact, revision: FactRevision, rule: RevertRule, changes: Changes, *, together: Collection[uuid.UUID]
) -> None:
    """`together`: the facts that are put back, which are no rivals of each other. A fact that was made goes to
    the trash."""
    if revision.version == 1:
        with changes.changing(fact, rule.verb):
            fact.status, fact.trashed_at = Status.TRASHED, changes.now
    elif rule.keeps_later:
        is_replaced = rule.no_rival and _has_rival(fact, revision, now=changes.now, but=together)
        is_done = not is_replaced and changes.restore(fact, rule.verb, revision.before)
        changes.counts["put_back" if is_done else "kept"] += 1
    else:
        with changes.changing(fact, rule.verb):
            audit.restore_state(fact, revision.before)


def _has_rival(fact: Fact, revision: FactRevision, *, now: datetime, but: Collection[uuid.UUID]) -> bool:
    """Whether another fact gives its key another value by now, if it would be active again."""
    was = copy(fact)
    audit.restore_state(was, revision.before)
    return was.status == Status.ACTIVE and not {one.pk for one in own_rivals([was], now=now)[was.pk]} <= set(but)


def _put_sections_back(done: ChangeSet, rule: RevertRule, changes: Changes) -> None:
    for revision in ProfileRevision.objects.filter(change_set=done.pk, version__isnull=False).order_by("-version"):
        rows = ProfileSection.objects.select_for_update(of=("self",)).select_related("end_user__tenant")
        named = {"end_user": revision.end_user_id, "agent_id": revision.agent_id, "section": revision.section}
        row, history = rows.filter(**named).first(), ProfileRevision.objects.of(revision)
        if row and _is_at(_left_at(done, row.pk) or revision.version or 0, row.version, history):
            put_back_section(row, revision, rule.verb, changes)
            changes.counts["sections"] += 1
        elif rule.keeps_later:
            changes.counts["kept"] += 1
        else:
            raise Conflict(_("This can no longer be undone, because the section has changed since."))


def _put_episodes_back(done: ChangeSet, rule: RevertRule, changes: Changes) -> None:
    history = Change.objects.filter(table=Table.EPISODE)
    for change in done.changes.filter(table=Table.EPISODE).order_by("uuid"):
        episode = episodes.lock(change.uuid)
        if episode and _is_at(change.version or 0, episode.version, history.filter(uuid=change.uuid)):
            with episodes.next_version(episode, "undo", changes):
                episodes.restore_state(episode, change.before)
            changes.counts["episodes"] += 1
        elif rule.keeps_later:
            changes.counts["kept"] += 1
        else:
            raise Conflict(_("This can no longer be undone, because the episode has changed since."))


def _left_at(done: ChangeSet, row: uuid.UUID) -> int | None:
    left = done.changes.filter(table=Table.SECTION, action=Action.LEFT, uuid=row)
    return left.values_list("version", flat=True).first()


def _is_at(left: int, version: int, history: QuerySet[Any]) -> bool:
    """Whether a row of this version is what it was at the version `left`: all changes since were reverted.

    `history` has the version and the change set of each change of the row.
    """
    while version > left:
        by = history.filter(version=version).values_list("change_set", flat=True).first()
        undone = ChangeSet.objects.filter(reverted_by=by).values("pk") if by else ChangeSet.objects.none()
        first = history.filter(change_set__in=undone).aggregate(first=Min("version"))["first"]
        if first is None:
            return False
        version = first - 1
    return version == left


def _put_rows_back(done: ChangeSet) -> None:
    """Delete rows that it made, give back what it changed, and make those of the person again that it deleted."""
    for table, model in ((Table.REFUSAL, FactRefusal), (Table.EVIDENCE, FactEvidence), (Table.RELATION, FactRelation)):
        made = done.changes.filter(table=table, action=Action.MADE)
        model._default_manager.filter(pk__in=made.values("number")).delete()
    for change in done.changes.filter(table=Table.REFUSAL, action=Action.CHANGED):
        FactRefusal.objects.filter(pk__in=[change.number]).update(**change.before)
    person = _person_of(done)
    if person is None:
        return
    lifted = [(row.number, row.before) for row in done.changes.filter(table=Table.REFUSAL, action=Action.DELETED)]
    facts = Fact.objects.in_bulk([row["fact"] for _number, row in lifted if row["fact"]])
    refusals = [
        FactRefusal(
            # By its number the revert of an earlier change set finds it, which made it.
            pk=number,
            tenant_id=done.tenant_id,
            end_user_id=person,
            kind=row["kind"],
            digest=bytes.fromhex(row["digest"]),
            # None when the fact was deleted since.
            fact=facts.get(uuid.UUID(row["fact"])) if row["fact"] else None,
            # Change sets from before this was kept do not say who: as of the rows from then, an operator.
            actor_kind=row.get("actor_kind", ActorKind.OPERATOR),
            actor_id=row.get("actor_id", ""),
            created_at=datetime.fromisoformat(row["created_at"]),
        )
        for number, row in lifted
    ]
    FactRefusal.objects.bulk_create(refusals, ignore_conflicts=True)


def _reopen_items(done: ChangeSet, facts: Collection[uuid.UUID], changes: Changes) -> None:
    """Open the items again that it closed, but for those whose question is answered by what the facts are now."""
    closed = list(ReviewItem.objects.filter(change_set=done.pk).select_for_update(of=("self",)).order_by("pk"))
    item_states.reopen(closed)
    # Of a fact that stays as it is, the question may be answered, too.
    changes.facts.update(pk for item in closed for pk in (item.fact_id, item.known_id) if pk)
    item_states.close_answered_items(changes)
    for fact in Fact.objects.filter(pk__in=facts, status=Status.PENDING).select_related("end_user", "extraction"):
        item_states.wait_again(fact, now=changes.now)
