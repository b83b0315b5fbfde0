"""What the pages of an episode show besides it: the turns that it tells of, how it fades, and who changed it."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models.functions import Left, Length

from memories.admin.authors import names_of, unnamed
from memories.models import AuditEvent, Episode, Turn

TURNS_SHOWN = 20
TURN_CLIP = 600
EVENTS_SHOWN = 20


@dataclass(frozen=True)
class Range:
    """The first turns that an episode tells of, and how many more there are."""

    turns: Sequence[Turn]
    more: int


@dataclass(frozen=True)
class Act:
    """What somebody did to an episode, and who it was."""

    event: AuditEvent
    actor: str


def range_of(episode: Episode) -> Range:
    """One query; the text of each turn is clipped in the database."""
    numbers = (episode.first_number, episode.last_number)
    turns = Turn.objects.filter(session=episode.session_id, number__range=numbers).order_by("number")
    clipped = turns.annotate(start=Left("content", TURN_CLIP), length=Length("content")).defer("content", "parts")
    shown = list(clipped[:TURNS_SHOWN])
    count = episode.last_number - episode.first_number + 1
    return Range(shown, max(0, count - len(shown)) if shown else 0)


def acts_on(episode: Episode) -> list[Act]:
    """Newest first; three queries."""
    events = list(AuditEvent.objects.filter(object_id=episode.pk).order_by("-id")[:EVENTS_SHOWN])
    actors = names_of(events)
    return [Act(event, actors.get(event.actor_id, unnamed(event.actor_kind))) for event in events]
