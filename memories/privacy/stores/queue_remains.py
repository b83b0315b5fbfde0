"""What workers leave behind about sessions that are gone, later than any erasure can see.

One that is killed at a task for somebody who was erased meanwhile leaves the arguments; one whose model fails then
leaves the session's id as that of the last failure.
"""

import uuid
from typing import Any

from django.db.models import Exists, OuterRef
from django_q.models import Task

from memories.models import EndpointState, EndUser, Session

FUNCTIONS = ("memories.tasks.consolidate_session", "memories.tasks.compact_session")
# The last ones: a look comes every half a minute.
LOOKED_AT = 200
# Some session that is not there.
SOMEBODY = uuid.UUID(int=0)


def sweep_remains() -> int:
    """Delete results about sessions that are not there, and forget their ids; how many results."""
    failed = EndpointState.objects.exclude(last_session=None)
    present = failed.filter(Exists(Session.objects.filter(pk=OuterRef("last_session"))))
    people = failed.filter(Exists(EndUser.objects.filter(pk=OuterRef("last_session"))))
    failed.exclude(pk__in=present).exclude(pk__in=people).exclude(last_session=SOMEBODY).update(last_session=SOMEBODY)
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
