"""Who deleted what turns said: pages show it in place of the words."""

from collections.abc import Iterable
from typing import Any

from memories.admin.trail.authors import names_of
from memories.models import AuditEvent, Turn


def sign_redactions(turns: Iterable[Turn | None]) -> None:
    """Set `redacted_by` on each turn that lost words: who did it last, as far as the audit trail still tells.

    Three queries; none where nothing was redacted.
    """
    redacted: list[Any] = [turn for turn in turns if turn and turn.redacted_at]
    if not redacted:
        return
    ids = {turn.pk for turn in redacted}
    events = AuditEvent.objects.filter(object_id__in=ids, object_type=Turn.__name__, verb="redact").order_by("id")
    last = {event.object_id: event for event in events}
    names = names_of(last.values())
    for turn in redacted:
        event = last.get(turn.pk)
        turn.redacted_by = names.get(event.actor_id, event.get_actor_kind_display()) if event else ""
