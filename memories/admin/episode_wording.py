"""What an episode's flaws say in plain words, and why it does not fade; pure."""

from collections.abc import Iterable

from memories.models import Episode

FLAWS = {
    "empty": "It says nothing.",
    "too_short": "It is too short to say anything.",
    "boilerplate": "It would fit any conversation.",
    "copy": "It repeats the conversation instead of summing it up.",
    "wrong_language": "It is not in the language of the conversation.",
    "invented": "It has none of the words of the conversation.",
    "instructions": "It reads like an instruction to a model.",
    "possible_secret": "It may hold a password or a key.",
}
OF_ITS_OWN = "The model that wrote it judged it so itself."


def flaws_of(codes: Iterable[str]) -> list[str]:
    """A sentence for each flaw; the code itself where there is none."""
    return [FLAWS.get(code, code) for code in codes]


def why_poor(episode: Episode) -> list[str]:
    """What is wrong with a poor one: by its flaws, else by its model."""
    return flaws_of(episode.flaws) or [OF_ITS_OWN]


def why_it_stays(episode: Episode) -> str:
    """Why an episode never fades; empty when it does fade."""
    if episode.pinned:
        return "it is pinned"
    return "it is an operator's word" if episode.binding else ""
