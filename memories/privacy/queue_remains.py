"""What django-q2 keeps of tasks that failed: those about sessions that are gone go, too.

A worker that is killed at a task for somebody who was erased meanwhile leaves its arguments behind, later than any
erasure can see.
"""

import uuid
from typing import Any

from django_q.models import Task

from memories.models import Session

FUNCTIONS = ("memories.tasks.consolidate_session", "memories.tasks.compact_session")
# The last ones: a look comes every half a minute.
LOOKED_AT = 200


def sweep_remains() -> int:
    """Delete results about sessions that are not there; how many."""
    rows = Task.objects.filter(func__in=FUNCTIONS).order_by("-stopped")[:LOOKED_AT]
    named = {row.pk: _session(row.args) for row in rows}
    there = set(Session.objects.filter(pk__in=[one for one in named.values() if one]).values_list("pk", flat=True))
    gone = [pk for pk, one in named.items() if one and one not in there]
    return Task.objects.filter(pk__in=gone).delete()[0] if gone else 0


def _session(arguments: Any) -> uuid.UUID | None:
    try:
        return uuid.UUID(arguments[0])
    except (TypeError, ValueError, IndexError, AttributeError):
        return None
