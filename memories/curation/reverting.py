"""Takes a change set back, whatever it was: a decision, an edit, a step of a batch, a merge of facts, a section.

A row is as the change set left it if it has the version that it had then. A change that was itself reverted since does
not count. A revert is a change set, too; it is not reverted again: who wants the change back makes it anew.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Max, Min, QuerySet
from django.utils.translation import gettext as _

from memories import audit
from memories.audit import Actor
from memories.curation import episodes
from memories.curation.change_sets import Changes
from memories.curation.facts.changing import check_no_rival, lock_facts, lock_person
from memories.curation.profile.sections import put_back_section
from memories.curation.review import item_states
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
    ProfileRevision,
    ProfileSection,
    ReviewItem,
    Status,
    Tenant,
)

Table, Action = Change.Table, Change.Action


@dataclass(frozen=True)
class RevertRule:
    """What the revert of a verb heeds, and what it is called in the audit trail."""

    # No other fact may have taken the key of one that becomes active again.
    no_rival: bool = False
    event: str = "undo"


_REVIEW = ("approve", "edit", "keep_both", "merge", "reject")
_FACT = (
    "correct", "edit", "expire", "forget", "lock", "pin", "promote", "publish", "restore", "unlock", "unpin", "withdraw"
)  # fmt: skip
_EPISODE = ("edit", "forget", "pin", "restore", "unpin")
_SECTION = ("delete", "release", "restore", "write")
# By what a change set is about, and its verb. What is not here cannot be reverted.
RULES: Mapping[tuple[type[Any], str], RevertRule] = {
    **{(ReviewItem, verb): RevertRule() for verb in _REVIEW},
    **{(Fact, verb): RevertRule() for verb in ("approve", "reconsider", "reject")},
    **{(Fact, verb): RevertRule(no_rival=True) for verb in _FACT},
    (Fact, "merge"): RevertRule(no_rival=True, event="undo_merge"),
    **{(Episode, verb): RevertRule() for verb in _EPISODE},
    **{(EndUser, verb): RevertRule() for verb in _SECTION},
    (EndUser, "clear"): RevertRule(no_rival=True),
}


def revert(*, change_set: uuid.UUID, actor: Actor, now: datetime, reason: str = "") -> None:
    """Put everything back that the change set changed, as long as nothing of it has changed since.

    Review items that it closed are open again. Errors: NotFound; Conflict (reverted already, changed since, or the
    verb's rule forbids it); DuplicateFact.
    """
    changes = Changes(actor=actor, now=now, reason=reason)
    with transaction.atomic():
        done = _locked(change_set)
        about = done.about
        rule = RULES.get((type(about), done.verb))
        if done.undone_at or rule is None or isinstance(about, Tenant):
            raise Conflict(_("There is nothing to undo. Somebody has already undone this."))
        facts = _put_facts_back(done, changes)
        _put_sections_back(done, changes)
        _put_episodes_back(done, changes)
        if rule.no_rival:
            check_no_rival(facts, now=now)
        _put_rows_back(done, about.pk if isinstance(about, EndUser) else about.end_user_id)
        _reopen_items(done, facts, changes)
        changes.record(rule.event, about)
        done.undone_at, done.reverted_by = now, changes.id
        done.save(update_fields=["undone_at", "reverted_by"])


def _locked(change_set: uuid.UUID) -> ChangeSet:
    """The change set, after a lock on the person: of two who revert it the second finds it
    reverted, and who edits one of the rows comes before or after. Errors: NotFound."""
    found = ChangeSet.objects.filter(pk=change_set)
    about = found.values_list("item__end_user", "fact__end_user", "episode__end_user", "end_user").first()
    lock_person(next((pk for pk in about or () if pk), None))
    done = found.select_related("tenant", "item", "fact", "episode", "end_user").first()
    if done is None:
        raise NotFound
    return done


def _put_facts_back(done: ChangeSet, changes: Changes) -> Sequence[Fact]:
    """The facts that it changed, as they were before. Errors: Conflict when one has changed since, or was deleted."""
    revisions = FactRevision.objects.filter(change_set=done.pk)
    left = dict(revisions.order_by().values_list("fact").annotate(Max("version")))
    left |= dict(done.changes.filter(table=Table.FACT, action=Action.LEFT).values_list("uuid", "version"))
    facts = {fact.pk: fact for fact in lock_facts(left)}
    history = FactRevision.objects.all()
    if len(facts) != done.counts.get("facts", len(left)) or not all(
        _is_at(left[pk], fact.version, history.filter(fact=fact)) for pk, fact in facts.items()
    ):
        raise Conflict(_("This can no longer be undone, because one of its facts has changed since."))
    # The last change first: of two facts with one text only one is live at a time.
    for revision in revisions.order_by("-id"):
        with changes.changing(facts[revision.fact_id], "undo"):
            audit.put_back(facts[revision.fact_id], revision.before)
    return list(facts.values())


def _put_sections_back(done: ChangeSet, changes: Changes) -> None:
    for revision in ProfileRevision.objects.filter(change_set=done.pk, version__isnull=False).order_by("-version"):
        rows = ProfileSection.objects.select_for_update(of=("self",)).select_related("end_user__tenant")
        row = rows.filter(end_user=revision.end_user_id, section=revision.section).first()
        history = ProfileRevision.objects.filter(end_user=revision.end_user_id, section=revision.section)
        if row is None or not _is_at(_left_at(done, row.pk) or revision.version or 0, row.version, history):
            raise Conflict(_("This can no longer be undone, because the section has changed since."))
        put_back_section(row, revision, changes)


def _put_episodes_back(done: ChangeSet, changes: Changes) -> None:
    history = Change.objects.filter(table=Table.EPISODE)
    for change in done.changes.filter(table=Table.EPISODE):
        episode = episodes.lock(change.uuid)
        if episode is None or not _is_at(change.version or 0, episode.version, history.filter(uuid=change.uuid)):
            raise Conflict(_("This can no longer be undone, because the episode has changed since."))
        with episodes.next_version(episode, "undo", changes):
            episodes.put_back(episode, change.before)


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


def _put_rows_back(done: ChangeSet, person: uuid.UUID) -> None:
    """Delete rows that it made, and make those of the person again that it deleted."""
    for table, model in ((Table.REFUSAL, FactRefusal), (Table.EVIDENCE, FactEvidence), (Table.RELATION, FactRelation)):
        made = done.changes.filter(table=table, action=Action.MADE)
        model._default_manager.filter(pk__in=made.values("number")).delete()
    lifted = [(row.number, row.before) for row in done.changes.filter(table=Table.REFUSAL, action=Action.DELETED)]
    facts = Fact.objects.in_bulk([row["fact"] for _number, row in lifted if row["fact"]])
    refusals = [
        FactRefusal(
            # By its number the revert of an earlier change set finds it, which made it.
            pk=number,
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


def _reopen_items(done: ChangeSet, facts: Sequence[Fact], changes: Changes) -> None:
    """Open the items again that it closed, but for those whose question is answered by what the facts are now."""
    closed = ReviewItem.objects.filter(change_set=done.pk).select_for_update(of=("self",)).order_by("pk")
    item_states.reopen(closed)
    item_states.settle(changes)
    for fact in facts:
        if fact.status == Status.PENDING:
            item_states.wait_again(fact, now=changes.now)
