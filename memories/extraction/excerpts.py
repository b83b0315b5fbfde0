"""What a model reads of a long message: as much as fits, what its author says of themselves first; pure.

The message keeps its beginning and its end, as `shorten` has them. Between them come sentences with words of the first
person or with a signal, then the others in their order. Where some are left out a mark stands.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from memories.llm import tokens
from memories.llm.prompts.framing import LONGEST_TEXT, TRUNCATED, ends, shorten
from memories.scoring.terms import fold
from memories.text import sentences, signals
from memories.text.signals import Patterns
from memories.text.transcript import TranscriptTurn

# A longer sentence is a table, a log or a text without full stops: it is read in pieces.
_LONGEST_PIECE = 500
# Signals are looked for in so much of a text; beyond it only words of the first person.
_SIGNALS_WITHIN = 50_000
# No token is longer, but for those of blanks.
_CHARACTERS_A_TOKEN = 12
_FIRST_PERSON = re.compile(
    r"(?<!\w)(?:i|i'm|i've|i'd|i'll|me|my|mine|myself|we|we're|us|our|ours"
    r"|ich|mich|mir|mein\w{0,2}|wir|uns|unser\w{0,2}"
    r"|je|j'\w+|moi|mon|ma|mes|nous|notre|nos"
    r"|yo|mi|mis|mio|mia|nosotr[oa]s|nuestr[oa]s?|soy|estoy|tengo|vivo|trabajo|prefiero|necesito|quiero"
    r"|io|miei|mie|noi|nostr[oaie]|sono|ho|abito|lavoro|preferisco|voglio"
    r"|eu|meus?|minhas?|nos|nosso|nossa|sou|estou|tenho|moro|trabalho|prefiro|preciso|quero"
    r"|я|мне|меня|мой|мои|моя|мое|мы|нас|нам|наш\w?)(?!\w)"
    r"|[我咱俺]|本人|私|僕|俺|わたし|ぼく|うち|나는|내가|저는|제가|우리"
)


Span = tuple[int, int]


@dataclass(frozen=True)
class Excerpt:
    """What is shown of a text, and how many of its characters are not."""

    text: str
    left_out: int = 0


def cost(turn: TranscriptTurn, budget: int) -> int:
    """The tokens of a batch that a turn takes; what is said to the person stays short."""
    if not turn.is_user:
        return tokens.count(shorten(turn.text))
    most = most_of(budget)
    return most if len(turn.text) > most * _CHARACTERS_A_TOKEN else min(most, tokens.count(turn.text))


def most_of(budget: int) -> int:
    """The tokens that one message may take of a batch's: there is room for the reply, too."""
    return budget * 3 // 4


def excerpt(text: str, budget: int, patterns: Patterns | None = None) -> Excerpt:
    """The text, or what fits in so many tokens; at least its two ends. `patterns` find signals (None: ours)."""
    is_short = len(text) <= LONGEST_TEXT
    if is_short or (len(text) <= budget * _CHARACTERS_A_TOKEN and tokens.count(text) <= budget):
        return Excerpt(text)
    start, end = ends(text)
    mark = tokens.count(TRUNCATED)
    room = budget - tokens.count(text[:start]) - tokens.count(text[end:]) - mark
    # The sentences between the ends with the blanks behind them; long ones in parts.
    places = [start, *(start + place for place, _ in sentences.spans(text[start:end]) if place), end]
    pieces = [
        (at, min(at + _LONGEST_PIECE, after))
        for first, after in pairwise(places)
        for at in range(first, after, _LONGEST_PIECE)
    ]
    kept: list[Span] = []
    for piece, is_first in _by_weight(text, pieces, patterns):
        room -= tokens.count(text[slice(*piece)]) + (mark if is_first else 0)
        if room < 0:
            break
        kept.append(piece)
    return _joined(text, [(0, start), *sorted(kept), (end, len(text))])


def _by_weight(text: str, pieces: Sequence[Span], patterns: Patterns | None) -> Iterator[tuple[Span, bool]]:
    """Those with words of the first person or a signal, then the others; each with whether it is one of the former."""
    others: list[Span] = []
    for piece in pieces:
        said = text[slice(*piece)]
        if _FIRST_PERSON.search(fold(said)) or (piece[0] < _SIGNALS_WITHIN and signals.matches(said, patterns)):
            yield piece, True
        else:
            others.append(piece)
    yield from ((piece, False) for piece in others)


def _joined(text: str, spans: Iterable[Span]) -> Excerpt:
    parts: list[str] = []
    place = left_out = 0
    for start, end in spans:
        if start > place:
            parts.append(TRUNCATED)
            left_out += start - place
        parts.append(text[start:end])
        place = end
    return Excerpt("".join(parts), left_out)
