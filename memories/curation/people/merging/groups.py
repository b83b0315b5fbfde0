"""Groups of two people who are merged: memberships move, and so does what they said and what was said about them.

Where both were members, or both said it, what is the other's stays with the id that leads to the survivor.
"""

from django.db.models import Exists, OuterRef

from memories.curation.change_sets import Changes
from memories.curation.people.merging.locks import Pair
from memories.curation.people.merging.rows import moved
from memories.models import Change, ChangeSet, GroupEvidence, GroupFact, GroupMember

Table = Change.Table


def join(pair: Pair, changes: Changes) -> None:
    """Move the rows; counts memberships and what was said."""
    survivor, merged = pair.people
    members = GroupMember.objects.filter(end_user=merged)
    both = GroupMember.objects.filter(end_user=survivor, group=OuterRef("group"))
    evidence = GroupEvidence.objects.filter(end_user=merged)
    same = GroupEvidence.objects.filter(end_user=survivor, fact=OuterRef("fact"))
    about = GroupFact.objects.filter(about=merged)
    twins = GroupFact.objects.present().filter(
        about=survivor, group=OuterRef("group"), content_hash=OuterRef("content_hash")
    )
    for table, name, rows, column, stays in (
        (Table.MEMBER, "memberships", members, "end_user", both),
        (Table.SAID, "said_in_groups", evidence, "end_user", same),
        (Table.SHARED, "", about, "about", twins),
    ):
        ids = list(rows.exclude(Exists(stays)).order_by("pk").values_list("pk", flat=True))
        if ids:
            rows.model._default_manager.filter(pk__in=ids).update(**{column: survivor})
            count = changes.move(table, ids)
            if name:
                changes.counts[name] = count


def separate(pair: Pair, done: ChangeSet) -> None:
    """Undo join(). Who left a group since stays out of it; what was said since stays with the survivor."""
    survivor, merged = pair.people
    members = GroupMember.objects.filter(pk__in=moved(done, Table.MEMBER), end_user=survivor)
    members.update(end_user=merged)
    GroupEvidence.objects.filter(pk__in=moved(done, Table.SAID), end_user=survivor).update(end_user=merged)
    GroupFact.objects.filter(pk__in=moved(done, Table.SHARED), about=survivor).update(about=merged)
