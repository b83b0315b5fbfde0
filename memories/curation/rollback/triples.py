"""Triples that keys stated or ended, in a roll back: what they stated goes to the trash, what they ended is open again.

Triples of facts follow their facts. The undo is that of every other change of triples (graph/taking_back.py).
"""

from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from memories.curation.change_sets import Changes
from memories.curation.graph import deciding, taking_back
from memories.curation.rollback.selection import Selector
from memories.models import ActorKind, AuditEvent, Change, ChangeSet, GraphTriple, TripleStatus, Trust


def stated(selector: Selector) -> QuerySet[Any]:
    """Triples that the key, or any key as the agent or from the session, stated, but for those in the trash; each with
    `stays`: an operator has decided on it since."""
    decided = Change.objects.filter(table=Change.Table.TRIPLE, uuid=OuterRef("pk"), change_set__undone_at=None)
    decided = decided.filter(change_set__verb__in=deciding.VERBS)
    rows = _selected(selector, "created_at").filter(actor_kind=ActorKind.KEY)
    if selector.key:
        rows = rows.filter(actor_id=str(selector.key))
    found: QuerySet[Any] = rows.annotate(stays=Exists(decided))
    return found


def ended(selector: Selector) -> QuerySet[GraphTriple]:
    """Other triples that they ended, as far as nobody has changed these since and the audit trail goes back. A session
    ends none: a key does, and says no turn for it."""
    ends = AuditEvent.objects.filter(
        object_id=OuterRef("pk"), object_type="GraphTriple", verb="end", actor_kind=ActorKind.KEY,
        created_at=OuterRef("updated_at"),
    )  # fmt: skip
    if selector.key:
        ends = ends.filter(actor_id=str(selector.key))
    rows = _selected(selector, "updated_at") if not selector.session else GraphTriple.objects.none()
    rows = rows.exclude(valid_to=None).exclude(trust=Trust.OPERATOR).filter(Exists(ends))
    return rows.exclude(pk__in=stated(selector).values("pk"))


def touched(selector: Selector) -> QuerySet[GraphTriple]:
    """All triples that the roll back touches, to lock their people."""
    return GraphTriple.objects.filter(Q(pk__in=stated(selector).values("pk")) | Q(pk__in=ended(selector).values("pk")))


def concerned(done: ChangeSet) -> QuerySet[GraphTriple]:
    """The triples that a roll back changed."""
    return GraphTriple.objects.filter(pk__in=done.changes.filter(table=Change.Table.TRIPLE).values("uuid"))


def counts(selector: Selector) -> dict[str, int]:
    """How many would go or be open again, and how many stay."""
    made = stated(selector)
    return {
        "triples": made.filter(stays=False).count() + ended(selector).count(),
        "kept": made.filter(stays=True).count(),
    }


def roll_back(selector: Selector, changes: Changes) -> None:
    """Do it, and count; the people are locked. One stays ended whose place an open triple has by now."""
    reopened = list(ended(selector).select_related("subject", "object").order_by("pk"))
    changes.counts["kept"] += stated(selector).filter(stays=True).count()
    going = GraphTriple.objects.filter(pk__in=list(stated(selector).filter(stays=False).values_list("pk", flat=True)))
    changes.counts["triples"] += taking_back.trash(going, changes)
    for triple in reopened:
        done = taking_back.reopen(triple, changes)
        changes.counts["triples" if done else "kept"] += 1


def _selected(selector: Selector, moment: str) -> QuerySet[GraphTriple]:
    """Stated triples of the selected people, agent, session and time; a time alone selects none, as of files."""
    rows = GraphTriple.objects.filter(tenant=selector.tenant, fact=None).exclude(status=TripleStatus.TRASHED)
    if not (selector.session or selector.key or selector.agent_id):
        return rows.none()
    given = {
        "agent_id": selector.agent_id or None,
        "end_user": selector.end_user,
        "turn__session": selector.session,
        f"{moment}__gte": selector.since,
        f"{moment}__lt": selector.until,
    }
    named: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return rows.filter(**named)
