"""Whether the memories that a sentence cites say it, by the readers that judge what may become a fact; pure.

A model may cite what it likes. A sentence stays if the memories that it cites have each of its words that tell
anything, its numbers, dates and names, and say them in this way: not denied, only asked or supposed, or said of
somebody else. What in other words might mean the same is cut: nobody vouches for what cannot be compared.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from memories.text import attribution, words
from memories.text.injection import detection
from memories.text.reading import slips
from memories.text.reading.supporting import Heard
from memories.text.support import SourceTexts
from memories.text.words import SpokenWords, StatementWord

# By whom a memory is: the person said it, an assistant did, or the hub keeps it as a fact or an episode.
# Letters that the forms of a plain word share, at least.
_SHORTEST_ROOT = 4
PERSON, ASSISTANT, MEMORY = "person", "assistant", "memory"


@dataclass(frozen=True)
class Memory:
    """A memory as it is told, by whom it is, and the day on which it was said."""

    text: str
    by: str
    day: date


def supported(sentence: str, cited: Sequence[Memory]) -> tuple[str, list[int]]:
    """The sentence as it may be told, and the places of the memories that say it; "" if they do not.

    Of several that it cites, one that says all of it is enough; else all together must. What an assistant said is told
    as that.
    """
    if not cited or detection.are_meant_for_model(sentence):
        return "", []
    alone = [[place] for place in range(len(cited))]
    for places in [*alone, *([list(range(len(cited)))] if len(cited) > 1 else [])]:
        memories = _Cited([cited[place] for place in places])
        if memories.say(sentence):
            return memories.told(sentence), places
    return "", []


class _Cited:
    """Memories that a sentence cites together."""

    def __init__(self, memories: Sequence[Memory]) -> None:
        self._memories = memories
        dated = [(one.text, one.day) for one in memories]
        # An answer may name the day on which something was said.
        days = [f"{one.day.isoformat()} {one.day:%A, %d %B %Y}" for one in memories]
        self._everybody = SourceTexts(users=dated, existing=days)
        self._heard = Heard([one.text for one in memories])

    def say(self, sentence: str) -> bool:
        said = _WHO.sub(" ", sentence)
        if self._everybody.lacks(said) or not self._everybody.has_all_of(said):
            return False
        pieces = [piece for piece in words.of(said).pieces if piece.text not in _LITTLE_WORDS]
        tells_something = len(pieces) > 1 or any(not piece.is_plain for piece in pieces)
        return tells_something and all(map(self._is_said, pieces)) and not slips.slip(sentence, self._heard)

    def _is_said(self, piece: StatementWord) -> bool:
        """Whether the memories have the word; a plain one in another form ("wohne", "wohnt"). Or its idea, where one is
        written in Chinese or Japanese and the other is not."""
        if self._said.says(piece):
            return True
        root = piece.text[: max(_SHORTEST_ROOT, len(piece.text) - 2)]
        if piece.is_plain and len(root) >= _SHORTEST_ROOT and any(word.startswith(root) for word in self._said.words):
            return True
        crosses = words.is_written_east(self._said.text) != piece.is_east
        return crosses and not words.concepts_of(piece.text).isdisjoint(self._said.concepts)

    @cached_property
    def _said(self) -> SpokenWords:
        return SpokenWords([*(one.text for one in self._memories), *self._everybody.existing])

    def told(self, sentence: str) -> str:
        """The sentence; if it rests on an assistant's words, told as what the assistant said."""
        others = [one.text for one in self._memories if one.by == ASSISTANT]
        if not others:
            return sentence
        person = SourceTexts(
            users=[(one.text, one.day) for one in self._memories if one.by != ASSISTANT], assistants=others
        )
        return attribution.attributed(sentence, person.trust_of_summary(sentence))


# Words that a sentence needs and that say nothing of their own, by language. "Because" and "after" do.
_LITTLE_WORDS = frozenset(
    word
    for language in (
        "the an of to in on at by as is are was were be been being am has have had having do does did it its he she",
        "they them their his her hers this that these those there who whom which and or so that's it's",
        "der die das den dem des ein eine einen einem einer zu im in an am auf bei ist sind war waren hat haben hatte",
        "er sie es ihr ihre sein seine und oder dass",
        "le la les un une des du de au aux en est sont il elle ils elles son sa ses leur et ou que qui",
        "el los las una unos del al es son era fue ha han su sus se lo que quien",
        "il lo gli uno di del della al alla sono era ha hanno suo sua si che chi",
        "os as um uma do da dos das ao na no foi tem seu sua se",
        "он она они его её их это что кто был была были есть в на и или",
    )
    for word in language.split()
)
# How an answer names the person and who else spoke.
_WHO = re.compile(
    r"\b(?:(?:the|der|die|dem|den|des|el|la|il|o|a) |l['’])?(?:users?(?:['’]s)?|nutzer(?:in|s)?|utilisateur|utente"
    r"|usu[aá]ri[oa])\b|\bпользовател\w+|\bthe assistant (?:said|mentioned|suggested)(?: that)?|用户|助手说|ユーザー",
    re.IGNORECASE,
)
