"""What pages show besides an episode: the turns that it summarizes, its flaws, why it stays, who changed it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models.functions import Left, Length
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memories.admin.trail.authors import names_of
from memories.admin.trail.redactions import sign_redactions
from memories.models import AuditEvent, Episode, Turn

TURNS_SHOWN = 20
TURN_CLIP = 600
EVENTS_SHOWN = 20
FLAWS = {
    "empty": _("It is empty."),
    "too_short": _("It is too short to be useful."),
    "boilerplate": _("It is generic and would fit any conversation."),
    "copy": _("It repeats the conversation instead of summarizing it."),
    "wrong_language": _("It is not in the language of the conversation."),
    "invented": _("It uses no words of the conversation."),
    "instructions": _("It looks like an instruction to a model."),
    "possible_secret": _("It may contain a password or a key."),
}
OF_ITS_OWN = _("The model that wrote it rated it as poor.")


@dataclass(frozen=True)
class TurnExcerpt:
    """The first turns that an episode summarizes, and how many more there are."""

    turns: Sequence[Turn]
    more: int


def turns_of(episode: Episode) -> TurnExcerpt:
    """The text of each turn is clipped in the database."""
    numbers = (episode.first_number, episode.last_number)
    turns = Turn.objects.filter(session=episode.session_id, number__range=numbers).order_by("number")
    clipped = turns.annotate(start=Left("content", TURN_CLIP), length=Length("content")).defer("content", "parts")
    shown = list(clipped[:TURNS_SHOWN])
    sign_redactions(shown)
    count = episode.last_number - episode.first_number + 1
    return TurnExcerpt(shown, max(0, count - len(shown)) if shown else 0)


def events_of(episode: Episode) -> list[tuple[AuditEvent, str]]:
    """What was done to the episode and by whom, newest first; three queries."""
    events = list(AuditEvent.objects.filter(object_id=episode.pk).order_by("-id")[:EVENTS_SHOWN])
    actors = names_of(events)
    return [(event, actors.get(event.actor_id, event.get_actor_kind_display())) for event in events]


def flaws_of(codes: Iterable[str]) -> list[str]:
    """A sentence for each flaw; the code itself where there is none."""
    return [str(FLAWS.get(code, code)) for code in codes]


def why_poor(episode: Episode) -> list[str]:
    """The flaws of a poor episode; without any, its model judged it so."""
    return flaws_of(episode.flaws) or [str(OF_ITS_OWN)]


def why_it_stays(episode: Episode) -> str:
    """Why an episode never fades; empty when it does fade."""
    if episode.pinned:
        return gettext("it is pinned")
    return gettext("an operator confirmed it") if episode.binding else ""
