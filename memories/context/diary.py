"""The diary in a context: what this agent noted for itself about the person, the newest first.

Keys' texts were judged when they were written, as facts are, and are not judged again.
"""

from memories.context.rendering import Line, diary_line
from memories.models import DiaryEntry, EndUser

# No budget has room for more, except for very short ones.
MOST_ENTRIES = 50


def diary_lines(person: EndUser, *, agent_id: str) -> list[Line]:
    """The newest entries of this agent's diary, each as one line that may be cut."""
    rows = DiaryEntry.objects.of(person.tenant, person).present().filter(agent_id=agent_id)
    found = rows.order_by("-created_at", "-id").values_list("pk", "topic", "content", "created_at")[:MOST_ENTRIES]
    return [
        diary_line(row_id=pk, topic=topic, text=text, at=at, place=place)
        for place, (pk, topic, text, at) in enumerate(found)
    ]
