"""Whether the memories that a sentence cites say it; pure.

A model may cite what it likes. A sentence stays if each part of it is a run of words of one sentence of one memory
(in_order.py), with its numbers and dates, and if that is not denied, only asked or supposed, or said of somebody else
there, as the readers judge that decide what may become a fact. Two memories say no third thing together. What in other
words might mean the same is cut: nobody vouches for what cannot be compared.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from memories.answering import in_order
from memories.models import Trust
from memories.scoring.terms import fold
from memories.text import attribution, quantities, words
from memories.text.injection import detection
from memories.text.reading import slips
from memories.text.reading.supporting import Heard
from memories.text.support import SourceTexts

# By whom a memory is: the person said it, an assistant did, or the hub keeps it as a fact or an episode.
PERSON, ASSISTANT, MEMORY = "person", "assistant", "memory"
_VOICES = {PERSON: in_order.OWN, ASSISTANT: in_order.TO, MEMORY: in_order.ABOUT}


@dataclass(frozen=True)
class Memory:
    """A memory as it is told, by whom it is, and the day on which it was said."""

    text: str
    by: str
    day: date


def supported(sentence: str, cited: Sequence[Memory]) -> tuple[str, list[int]]:
    """The sentence as it may be told, and the places of the memories that say it; "" if they do not.

    One may say all of it, or each a part. What an assistant said is told as that, and nothing else is.
    """
    if detection.are_meant_for_model(sentence):
        return "", []
    bare = _ASSISTANT_SAID.sub("", sentence)
    # The person's own words before those of an assistant.
    order = sorted(range(len(cited)), key=lambda place: cited[place].by == ASSISTANT)
    if bare != sentence:
        order = [place for place in order if cited[place].by == ASSISTANT]
    for parts in ([bare], in_order.parts_of(bare)):
        found = [next((place for place in order if _says(cited[place], part)), None) for part in parts]
        places = sorted({place for place in found if place is not None})
        if places and None not in found:
            is_assistants = any(cited[place].by == ASSISTANT for place in places)
            return attribution.attributed(sentence, Trust.ASSISTANT) if is_assistants else sentence, places
    return "", []


def _says(memory: Memory, part: str) -> bool:
    statement = words.of(part)
    pieces = [piece for piece in statement.pieces if piece.text not in _LITTLE_WORDS]
    tells_something = len(pieces) > 1 or statement.codes or any(not piece.is_plain for piece in pieces)
    if not tells_something:
        return False
    days = frozenset(_words(part)) if quantities.of(part).dates else frozenset()
    told = any(_repeats(memory, part, said, days) for said in dict.fromkeys(in_order.sentences_of(memory.text)))
    return told and not slips.slip(part, Heard([memory.text]))


def _repeats(memory: Memory, part: str, said: str, dated: frozenset[str]) -> bool:
    """`dated`: the words of a part that has a date. Those for a day that was said otherwise ("yesterday") need not be
    there: the day itself is compared."""
    theirs = _words(said) if dated else ()
    days = frozenset(
        word
        for word in dated.difference(theirs)
        if word[0].isdigit() or word in "年月日号" or quantities.is_number_word(word)
    )
    is_run = in_order.repeats(part, said, voice=_VOICES[memory.by], resolved=days)
    return is_run and not SourceTexts(users=[(said, memory.day)]).lacks(part)


def _words(text: str) -> list[str]:
    return list(map(fold, _WORD.findall(text)))


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
# How an answer tells what an assistant said.
_ASSISTANT_SAID = re.compile(
    r"\A\W*(?:the assistant (?:said|mentioned|suggested)(?: that)?|助手说)\s*[:：,，]?\s*", re.IGNORECASE
)
_WORD = re.compile(r"\d+|[年月日号]|(?:(?![\u3400-\u9fff])[^\W\d_])+")
