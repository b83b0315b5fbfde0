"""What tests of dreams share: a person with episodes, a model that is told what to edit, one dream."""

from datetime import timedelta
from typing import Any

from memories.dream import dreaming
from memories.models import Dream, EndUser, Episode, MemoryFile, Session
from tests import factories
from tests.factories import NOW

HOUR = timedelta(hours=1)


def dreamer(agent_id: str = "bot", **numbers: Any) -> EndUser:
    """A person of a tenant with dreams switched on."""
    return factories.end_user(factories.tenant(**{"dreams": True, **numbers}))


def episodes(person: EndUser, *summaries: str, agent_id: str = "bot", since: Any = NOW - HOUR) -> list[Episode]:
    """Episodes of a new session with this agent, one minute after the other."""
    session: Session = factories.session(person, agent_id=agent_id)
    return [
        factories.episode(
            session, summary, first_number=number, last_number=number, now=since + timedelta(minutes=number)
        )
        for number, summary in enumerate(summaries, start=1)
    ]


def edit(path: str, old: str, new: str) -> dict[str, str]:
    return {"path": path, "old_text": old, "new_text": new}


def edits(*items: Any) -> dict[str, Any]:
    """The model's answer."""
    return {"edits": list(items)}


def begin(person: EndUser, agent_id: str = "bot", now: Any = NOW) -> Dream:
    return dreaming.begin(person=person, agent_id=agent_id, trigger=Dream.Trigger.HAND, now=now)


def dream(person: EndUser, agent_id: str = "bot", now: Any = NOW) -> Dream:
    """One dream from its beginning to its end."""
    row = begin(person, agent_id, now)
    dreaming.run(row, now=now)
    row.refresh_from_db()
    return row


def text_of(person: EndUser, path: str, agent_id: str = "bot") -> str | None:
    """What the file says now; None where there is none."""
    row = MemoryFile.objects.filter(end_user=person, agent_id=agent_id, path=path, trashed_at=None).first()
    return row.content if row else None


def states(row: Dream) -> list[tuple[str, str]]:
    """State and code of each edit."""
    return list(row.edits.order_by("number").values_list("state", "code"))
