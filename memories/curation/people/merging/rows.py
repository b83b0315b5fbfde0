"""Moves rows from one person to another: what becomes of every store that can hold personal data in a merge.

A test compares CONSIDERED with the privacy registry, so that nobody forgets a new table here.
"""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import Any

from django.apps import apps
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from memories.curation.change_sets import Changes
from memories.curation.people.merging.locks import Pair
from memories.exceptions import Conflict
from memories.kinds import PLAIN
from memories.models import (
    Change,
    ChangeSet,
    EndUser,
    Fact,
    FactRefusal,
    IdempotencyRecord,
    ProfileRevision,
    ReviewItem,
    Session,
    Trajectory,
    Turn,
)

Table, Action = Change.Table, Change.Action
_LONGEST_ID = 255
# Of one statement.
ROWS = 5_000
# Digits of the hub's own id that are enough to distinguish the sessions of one person.
_DIGITS = 12


class MergeStrategy(Enum):
    """How the rows of a store come to their new person."""

    # By a rule of its own, in this module or one beside it.
    OWN_RULE = auto()
    # Its copy of the person's id follows a session or a fact.
    CARRIED = auto()
    # It has no person's id: it belongs to a row that has.
    HANGS = auto()
    # It stays with the alias that leads to the survivor.
    STAYS = auto()


CONSIDERED: Mapping[str, MergeStrategy] = {
    "memories.EndUser": MergeStrategy.OWN_RULE,
    "memories.Session": MergeStrategy.OWN_RULE,
    "memories.SessionQueue": MergeStrategy.HANGS,
    "memories.WorkingMemory": MergeStrategy.HANGS,
    "memories.Turn": MergeStrategy.CARRIED,
    "memories.TurnVector": MergeStrategy.CARRIED,
    "memories.Attachment": MergeStrategy.CARRIED,
    "memories.Passage": MergeStrategy.CARRIED,
    "memories.PassageVector": MergeStrategy.CARRIED,
    "memories.Episode": MergeStrategy.CARRIED,
    "memories.EpisodeVector": MergeStrategy.CARRIED,
    "memories.ExtractionRun": MergeStrategy.CARRIED,
    "memories.LoggedContext": MergeStrategy.STAYS,
    # Nobody asks for it under that id any more.
    "memories.SentBlock": MergeStrategy.STAYS,
    # It says what an import made for that id.
    "memories.ImportedRow": MergeStrategy.STAYS,
    # It says under which id a dry run found a memory; who deletes what it found looks where the memory is now.
    "memories.PolicyFinding": MergeStrategy.STAYS,
    # It is over with the merge.
    "memories.PersonLink": MergeStrategy.STAYS,
    # It is forgotten within a week.
    "memories.SeenText": MergeStrategy.STAYS,
    # It says what happened under that id.
    "memories.WebhookDelivery": MergeStrategy.STAYS,
    # Its namespace names the id that it was written under.
    "memories.StoreItem": MergeStrategy.STAYS,
    "memories.StoreItemVector": MergeStrategy.HANGS,
    "memories.Fact": MergeStrategy.OWN_RULE,
    "memories.FactVector": MergeStrategy.CARRIED,
    "memories.FactEvidence": MergeStrategy.HANGS,
    "memories.FactRevision": MergeStrategy.HANGS,
    "memories.FactRelation": MergeStrategy.HANGS,
    "memories.GraphEntity": MergeStrategy.OWN_RULE,
    "memories.GraphTriple": MergeStrategy.OWN_RULE,
    "memories.ReviewItem": MergeStrategy.OWN_RULE,
    "memories.ReviewNote": MergeStrategy.HANGS,
    "memories.ChangeSet": MergeStrategy.OWN_RULE,
    "memories.Change": MergeStrategy.HANGS,
    "memories.MemoryFile": MergeStrategy.OWN_RULE,
    "memories.FileVersion": MergeStrategy.HANGS,
    "memories.Trajectory": MergeStrategy.OWN_RULE,
    "memories.TrajectoryStep": MergeStrategy.HANGS,
    # It says under which id a session had a skill; who ends it looks among the ids that lead to the person.
    "memories.SkillTrial": MergeStrategy.STAYS,
    "memories.SkillEvidence": MergeStrategy.HANGS,
    "memories.SkillText": MergeStrategy.HANGS,
    # plain.py
    **{kind.model._meta.label: MergeStrategy.OWN_RULE for kind in PLAIN},
    **{kind.embedded.vectors._meta.label: MergeStrategy.OWN_RULE for kind in PLAIN if kind.embedded},
    "memories.GroupMember": MergeStrategy.OWN_RULE,
    "memories.GroupEvidence": MergeStrategy.OWN_RULE,
    "memories.GroupFact": MergeStrategy.OWN_RULE,
    # It has no person of its own: its members lead to it.
    "memories.MemoryGroup": MergeStrategy.HANGS,
    # A log of what was done for that id. What is open ends: locks.py.
    "memories.Dream": MergeStrategy.STAYS,
    "memories.DreamEdit": MergeStrategy.HANGS,
    "memories.DreamedEpisode": MergeStrategy.HANGS,
    "memories.ProfileSection": MergeStrategy.OWN_RULE,
    "memories.ProfileRevision": MergeStrategy.OWN_RULE,
    "memories.FactRefusal": MergeStrategy.OWN_RULE,
    "memories.IdempotencyRecord": MergeStrategy.OWN_RULE,
    "memories.PrivacyCase": MergeStrategy.STAYS,
    "memories.PrivacyExport": MergeStrategy.HANGS,
    "memories.PrivacyExportPiece": MergeStrategy.HANGS,
}
# Copies of the person's id, and the row that each follows.
WITH_SESSION = {
    "memories.Episode": "session",
    "memories.EpisodeVector": "episode__session",
    "memories.ExtractionRun": "session",
    "memories.Attachment": "session",
    "memories.Passage": "attachment__session",
    "memories.PassageVector": "passage__attachment__session",
}
WITH_TURN = {"memories.Turn": "pk", "memories.TurnVector": "turn"}
WITH_FACT = {"memories.FactVector": "fact"}


def reassign(sessions: Sequence[uuid.UUID], facts: Sequence[uuid.UUID], *, to: EndUser) -> None:
    """Give these sessions and facts to the person, with every copy of the person's id.

    No statement takes more than some thousand rows: it could have too many parameters, or take too long.
    """
    for some in _slices(sessions):
        Session.objects.filter(pk__in=some).update(end_user=to)
        _carry_copies(WITH_SESSION, some, to)
        for wanted in _turn_slices(some):
            _carry_copies(WITH_TURN, Turn.objects.filter(wanted).values("pk"), to)
    for some in _slices(facts):
        Fact.objects.filter(pk__in=some).update(end_user=to)
        _carry_copies(WITH_FACT, some, to)


def _slices(ids: Sequence[uuid.UUID]) -> Iterator[Sequence[uuid.UUID]]:
    return (ids[start : start + ROWS] for start in range(0, len(ids), ROWS))


def _turn_slices(sessions: Sequence[uuid.UUID]) -> Iterator[Q]:
    """Conditions for the turns of these sessions: of several short ones together, of a long one a part at a time."""
    together: list[uuid.UUID] = []
    left = ROWS
    for session, count in Session.objects.filter(pk__in=sessions).order_by("pk").values_list("pk", "turn_count"):
        if count > ROWS:
            parts = range(0, count, ROWS)
            yield from (Q(session=session, number__gt=start, number__lte=start + ROWS) for start in parts)
            continue
        if count > left:
            yield Q(session__in=together)
            together, left = [], ROWS
        together.append(session)
        left -= count
    if together:
        yield Q(session__in=together)


def _carry_copies(paths: Mapping[str, str], ids: Any, to: EndUser) -> None:
    for label, path in paths.items():
        apps.get_model(label)._default_manager.filter(**{f"{path}__in": ids}).update(end_user=to)


def move_questions(*, frm: EndUser, to: EndUser) -> int:
    """Let review items follow what they are about, after reassign() and the profile's revisions; returns how many."""
    items = ReviewItem.objects.filter(end_user=frm)
    about = [items.filter(**{f"{name}__end_user": to}) for name in ("fact", "episode", "proposed_section")]
    about.append(items.filter(fact=None, known__end_user=to))
    return sum(
        ReviewItem.objects.filter(pk__in=list(rows.values_list("pk", flat=True))).update(end_user=to) for rows in about
    )


def move_refusals(changes: Changes, *, frm: EndUser, to: EndUser) -> int:
    """Move the refusals that the other person does not have as well; returns how many.

    Of those that both have the operator's binds: one that a key made becomes the operator's.
    """
    own = {(row.kind, bytes(row.digest)): row for row in FactRefusal.objects.filter(end_user=to)}
    pairs = [(row, own.get((row.kind, bytes(row.digest)))) for row in FactRefusal.objects.filter(end_user=frm)]
    for theirs, ours in pairs:
        if ours and ours.by_key and not theirs.by_key:
            before = {"actor_kind": ours.actor_kind, "actor_id": ours.actor_id}
            changes.record_row_change(Table.REFUSAL, Action.CHANGED, ours.pk, before=before)
            ours.actor_kind, ours.actor_id = theirs.actor_kind, theirs.actor_id
            ours.save(update_fields=["actor_kind", "actor_id"])
    ids = [theirs.pk for theirs, ours in pairs if ours is None]
    FactRefusal.objects.filter(pk__in=ids).update(end_user=to)
    return changes.move(Table.REFUSAL, ids)


def move_change_sets(revisions: QuerySet[ProfileRevision], *, to: EndUser) -> None:
    """Let the change sets of these revisions of sections follow them, but for merges: they are of two people."""
    made = ChangeSet.objects.filter(pk__in=revisions.values("change_set"), merged=None).exclude(end_user=None)
    made.update(end_user=to)


def share_kept_answers(*, frm: EndUser, to: EndUser) -> None:
    """Link kept answers about the one to the other, too, so that an erasure of the other finds them."""
    link = IdempotencyRecord.end_users.through
    records = link.objects.filter(enduser=frm).values_list("idempotencyrecord", flat=True)
    rows = [link(idempotencyrecord_id=record, enduser_id=to.pk) for record in records]
    link.objects.bulk_create(rows, ignore_conflicts=True)


def same_session_ids(survivor: EndUser, merged: EndUser) -> QuerySet[Session]:
    """Sessions of the merged person whose id and agent the survivor has as well."""
    ours = Session.objects.filter(end_user=survivor, agent_id=OuterRef("agent_id"), external_id=OuterRef("external_id"))
    return Session.objects.filter(Exists(ours), end_user=merged)


def rename_sessions(pair: Pair, changes: Changes) -> int:
    """Give these sessions another id; returns how many. Errors: Conflict when the id would be too long."""
    renamed = list(same_session_ids(*pair.people))
    for session in renamed:
        changes.record_row_change(
            Table.SESSION, Action.CHANGED, session.pk, before={"external_id": session.external_id}
        )
        before = session.external_id
        session.external_id += f"~{session.pk.hex[-_DIGITS:]}"
        _rename_in_trajectories(session, before)
        if len(session.external_id) > _LONGEST_ID:
            raise Conflict(_("Both have a session with the same id, and the id is too long to be changed."))
    Session.objects.bulk_update(renamed, ["external_id"], batch_size=500)
    return len(renamed)


def restore_session_ids(done: ChangeSet) -> None:
    """Undo rename_sessions(), after the sessions are the other person's again."""
    rows = done.changes.filter(table=Table.SESSION, action=Action.CHANGED)
    before = {row.uuid: row.before for row in rows if row.uuid}
    renamed = list(Session.objects.filter(pk__in=before))
    for session in renamed:
        old = session.external_id
        session.external_id = before[session.pk]["external_id"]
        _rename_in_trajectories(session, old)
    Session.objects.bulk_update(renamed, ["external_id"], batch_size=500)


def _rename_in_trajectories(session: Session, before: str) -> None:
    """What was done in the session follows its new id."""
    named = {"tenant": session.tenant_id, "end_user": session.end_user_id, "agent_id": session.agent_id}
    Trajectory.objects.filter(**named, session_id=before).update(session_id=session.external_id[:_LONGEST_ID])


def moved(done: ChangeSet, table: str) -> QuerySet[Change, Any]:
    """Ids of the rows that became another person's, as a subquery."""
    name = "number" if table == Table.REFUSAL else "uuid"
    return done.changes.order_by().filter(table=table, action=Action.MOVED).values_list(name, flat=True)
