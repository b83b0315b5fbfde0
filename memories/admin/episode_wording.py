"""What an episode's flaws say in plain words, and why it does not fade; pure."""

from collections.abc import Iterable

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories.models import Episode

FLAWS = {
    "empty": gettext_lazy("It says nothing."),
    "too_short": gettext_lazy("It is too short to say anything."),
    "boilerplate": gettext_lazy("It would fit any conversation."),
    "copy": gettext_lazy("It repeats the conversation instead of summing it up."),
    "wrong_language": gettext_lazy("It is not in the language of the conversation."),
    "invented": gettext_lazy("It has none of the words of the conversation."),
    "instructions": gettext_lazy("It reads like an instruction to a model."),
    "possible_secret": gettext_lazy("It may hold a password or a key."),
}
OF_ITS_OWN = gettext_lazy("The model that wrote it judged it so itself.")


def flaws_of(codes: Iterable[str]) -> list[str]:
    """A sentence for each flaw; the code itself where there is none."""
    return [str(FLAWS.get(code, code)) for code in codes]


def why_poor(episode: Episode) -> list[str]:
    """What is wrong with a poor one: by its flaws, else by its model."""
    return flaws_of(episode.flaws) or [str(OF_ITS_OWN)]


def why_it_stays(episode: Episode) -> str:
    """Why an episode never fades; empty when it does fade."""
    if episode.pinned:
        return _("it is pinned")
    return _("it is an operator's word") if episode.binding else ""
