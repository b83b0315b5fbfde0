"""The trust of a text: the lowest trust of the sides whose words it is made of; pure (docs/what-is-kept.md).

The model names the turns that a text rests on. This compares their words, and can only lower the trust.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from memories.models import Trust
from memories.scoring.terms import fold
from memories.text import quantities, sentences, words
from memories.text.quantities import Counted
from memories.text.words import SpokenWords, Statement, StatementWord

# Of a longer turn only so many characters of its beginning and its end are compared; the model is shown less of it,
# unless a tenant's batches have more than 10,000 tokens.
HEARD = 20_000
# A text of plain words belongs to others if one of their sentences has so many that the person never used.
_BORROWED = 3
# A text of common words belongs to others if they have more than so many for each of the person's own.
_SPARED = 0.5
# An assistant that adds at most so many new words in Chinese or Japanese introduces no name.
_LITTLE = 3
# Cosines of `use-multilingual-3` (docs/what-is-kept.md). A statement without a word of the person's belongs to others
# if it is so near one of their sentences and so far from all of the person's.
NEAR_OTHERS, FAR_FROM_PERSON = 0.25, 0.12
# So many sentences of a side, and so many statements of a batch, are compared by meaning.
_COMPARED, MOST_COMPARED = 200, 200

_LONGEST_ASSENT = 80
_ASSENT = tomllib.loads((Path(__file__).parent / "data" / "assent.toml").read_text(encoding="utf-8"))
_ASSENT_WORDS = frozenset(fold(word) for word in _ASSENT["words"].split())
_ASSENT_EAST = re.compile("|".join(fold(pattern) for pattern in _ASSENT["east"]))
_NOT_WORDS = re.compile(r"[\W_]+")
_LATIN = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_QUESTION_OR_NUMBER = re.compile(r"[?？\d]")

# Vectors of length 1, one a text; None when no embedding is available.
Embed = Callable[[Sequence[str]], npt.NDArray[np.float32] | None]
_Piece = TypeVar("_Piece", str, StatementWord)


@dataclass(frozen=True)
class SourceTexts:
    """The texts of each side: the person's turns with their days, facts that the person or an operator stated, and the
    turns of assistants and tools."""

    users: Sequence[tuple[str, date | None]] = ()
    existing: Sequence[str] = ()
    assistants: Sequence[str] = ()
    tools: Sequence[str] = ()
    embed: Embed | None = None
    _judged: dict[tuple[str, bool], Trust] = field(default_factory=dict, compare=False, repr=False)
    _compared: list[str] = field(default_factory=list, compare=False, repr=False)
    _split: dict[tuple[str, ...], list[SpokenWords]] = field(default_factory=dict, compare=False, repr=False)

    def trust_of(self, text: str) -> Trust:
        """The lowest trust of the sides that the text is made of; an empty text is the person's."""
        return self._trust_of(text, names=True)

    def trust_of_summary(self, text: str) -> Trust:
        """The same of a text that may have names which nobody said: a summary may be in another language."""
        return self._trust_of(text, names=False)

    def _trust_of(self, text: str, *, names: bool) -> Trust:
        if (text, names) not in self._judged:
            statement = words.of(text)
            lowered = [*self._by_codes(statement), *self._by_quantities(statement)]
            lowered += self._by_words(statement, names=names)
            if not lowered and not self._has_own_word(statement):
                lowered = self._by_meaning(text)
            self._judged[text, names] = next(
                (trust for trust in (Trust.TOOL, Trust.ASSISTANT) if trust in lowered), Trust.USER
            )
        return self._judged[text, names]

    def names_nothing_new(self, text: str) -> bool:
        """Whether the text has no word that others used and the person did not; a word that nobody used is allowed."""
        statement = words.of(text)
        return not self._by_words(statement, names=False) and not self._by_codes(statement)

    def has_all_of(self, text: str) -> bool:
        """Whether the person or a stated fact has every number, name, code and distinctive word of the text."""
        statement = words.of(text)
        if self.trust_of(text) != Trust.USER:
            return False
        return not self._foreign(statement)

    def lacks(self, text: str) -> bool:
        """Whether the text has a code, a number or a date that neither the person nor a stated fact has."""
        return self.lacks_code(text) or bool(self._by_quantities(words.of(text)))

    def lacks_code(self, text: str) -> bool:
        """Whether the text has a mail, an address or another code that neither the person nor a stated fact has."""
        return bool(self._by_codes(words.of(text)))

    def has_own_word(self, text: str) -> bool:
        """Whether the text has a word beyond plain ones, or a code, that the person or a stated fact has."""
        return self._has_own_word(words.of(text))

    def is_mere_assent(self, texts: Iterable[str], text: str) -> bool:
        """Whether one of these texts of the person only says yes, and no word of `text` is the person's own."""
        return any(map(is_assent, texts)) and not self._has_own_word(words.of(text))

    def _by_codes(self, statement: Statement) -> list[Trust]:
        missing = [code for code in statement.codes if not self._own.has_code(code)]
        return [self._source(SpokenWords.has_code, code) or Trust.ASSISTANT for code in missing]

    def _by_quantities(self, statement: Statement) -> list[Trust]:
        found = statement.quantities
        missing = [number for number in found.numbers if not self._counted.has_number(number)]
        missing = [number for number in missing if not self._own.has_code(number) or len(number) < 5]
        lowered = [Trust.TOOL if number in self._numbers_of_tools else Trust.ASSISTANT for number in missing]
        return [*lowered, *(Trust.ASSISTANT for parts in found.dates if not self._counted.has_date(parts))]

    @cached_property
    def _numbers_of_tools(self) -> frozenset[str]:
        """The numbers that tools have and assistants have not."""
        tools, assistants = (
            Counted(tuple((compared_part(text), None) for text in texts)) for texts in (self.tools, self.assistants)
        )
        return tools.numbers - assistants.numbers if tools.numbers else tools.numbers

    def _by_words(self, statement: Statement, *, names: bool = True) -> list[Trust]:
        foreign = self._foreign(statement)
        lowered = [trust for piece in foreign if (trust := self._source(_expresses, piece))]
        if names and any(piece.is_name and self._is_nobodys(piece, statement) for piece in foreign):
            lowered.append(Trust.ASSISTANT)
        return lowered or self._by_borrowing(statement)

    def _foreign(self, statement: Statement) -> list[StatementWord]:
        """The distinctive words that the person has not."""
        own: list[StatementWord] = []
        foreign: list[StatementWord] = []
        for piece in statement.pieces:
            if piece.is_distinctive:
                (own if self._is_own(piece) else foreign).append(piece)
        # A pair of characters that lies across a word of the person's is no word itself.
        pairs = [piece.text for piece in own if piece.is_pair]
        return [
            piece
            for piece in foreign
            if not (piece.is_pair and any(piece.text[0] == pair[-1] or piece.text[-1] == pair[0] for pair in pairs))
        ]

    def _by_borrowing(self, statement: Statement) -> list[Trust]:
        """A text without distinctive words: others may have more of its common words than the person has, or one
        sentence of others several of its plain words."""
        counted = [piece for piece in statement.pieces if not piece.is_plain]
        own = sum(self._is_own(piece) for piece in counted)
        common = [piece for piece in counted if piece.is_common and not self._is_own(piece)]
        lowered = [trust for piece in common if (trust := self._source(SpokenWords.says, piece))]
        if counted:
            return lowered if len(lowered) > _SPARED * own else []
        plain = [piece for piece in statement.pieces if len(piece.text) > 3 and not self._own.says(piece)]
        if len(plain) < _BORROWED:
            return []
        return [
            trust
            for trust, sides in ((Trust.TOOL, self.tools), (Trust.ASSISTANT, self.assistants))
            if any(sum(voice.says(piece) for piece in plain) >= _BORROWED for voice in self._sentences(sides))
        ]

    def _by_meaning(self, text: str) -> list[Trust]:
        """A text without a word of the person's: others may have said it in other words, or in another language."""
        if not (text.strip() and self.embed and self._meanings):
            return []
        if len(self._compared) >= MOST_COMPARED:
            # More statements than any honest batch has.
            return [Trust.ASSISTANT]
        self._compared.append(text)
        vector = self.embed([text])
        if vector is None:
            return []
        near = {trust: max((vectors @ vector[0]).tolist(), default=-1.0) for trust, vectors in self._meanings.items()}
        if near.pop(Trust.USER) > FAR_FROM_PERSON:
            return []
        return [trust for trust, cosine in near.items() if cosine >= NEAR_OTHERS]

    @cached_property
    def _meanings(self) -> dict[Trust, npt.NDArray[np.float32]]:
        """Vectors of the sentences of each side, made once; empty when no other side says anything."""
        sides = {
            Trust.USER: [*(text for text, _ in self.users), *self.existing],
            Trust.ASSISTANT: list(self.assistants),
            Trust.TOOL: list(self.tools),
        }
        spoken = {trust: _parts(texts)[:_COMPARED] for trust, texts in sides.items()}
        every = [text for texts in spoken.values() for text in texts]
        made = self.embed(every) if self.embed and (spoken[Trust.ASSISTANT] or spoken[Trust.TOOL]) else None
        if made is None:
            return {}
        ends = np.cumsum([len(texts) for texts in spoken.values()])[:-1]
        return dict(zip(spoken, np.split(made, ends), strict=True))

    def _sentences(self, sides: Iterable[str]) -> list[SpokenWords]:
        texts = tuple(map(compared_part, sides))
        if texts not in self._split:
            self._split[texts] = [SpokenWords([sentence]) for sentence in _parts(texts)]
        return self._split[texts]

    def _is_own(self, piece: StatementWord) -> bool:
        """Whether the person has the word, its idea, or another spelling of the name."""
        if self._own.says(piece):
            return True
        ideas = words.concepts_of(piece.text)
        if ideas and not ideas.isdisjoint(self._own.concepts):
            return True
        return piece.is_name and not self._is_others(piece) and self._own.resembles(piece.text)

    def _is_nobodys(self, piece: StatementWord, statement: Statement) -> bool:
        """Whether a name is in no turn, in no spelling that can be recognised."""
        if self._is_others(piece):
            return False
        initials = "".join(one.text[0] for one in statement.pieces if one.is_name)
        if len(initials) > 1 and initials in self._own.words:
            return False
        return not (words.is_written_east(self._own.text) and self._others_say_little)

    def _is_others(self, piece: StatementWord) -> bool:
        return self._assistant.says(piece) or self._tool.says(piece)

    def _source(self, says: Callable[[SpokenWords, _Piece], bool], spoken: _Piece) -> Trust | None:
        """Which other side says it; None when none does."""
        if says(self._assistant, spoken):
            return Trust.ASSISTANT
        return Trust.TOOL if says(self._tool, spoken) else None

    def _has_own_word(self, statement: Statement) -> bool:
        pieces = any(self._is_own(piece) for piece in statement.pieces if not piece.is_plain)
        return pieces or any(self._own.has_code(code) for code in statement.codes)

    @cached_property
    def _own(self) -> SpokenWords:
        return SpokenWords([*(compared_part(text) for text, _ in self.users), *self.existing])

    @cached_property
    def _assistant(self) -> SpokenWords:
        return SpokenWords(map(compared_part, self.assistants))

    @cached_property
    def _tool(self) -> SpokenWords:
        return SpokenWords(map(compared_part, self.tools))

    @cached_property
    def _counted(self) -> Counted:
        return Counted(
            (*((compared_part(text), at) for text, at in self.users), *((text, None) for text in self.existing))
        )

    @cached_property
    def _others_say_little(self) -> bool:
        texts = (words.of(compared_part(text)) for text in (*self.assistants, *self.tools))
        pieces = (piece for text in texts for piece in text.pieces if piece.is_distinctive)
        return len({piece.text for piece in pieces if not self._own.says(piece)}) <= _LITTLE


def _parts(texts: Iterable[str]) -> list[str]:
    """The sentences of the compared parts of the texts."""
    return [text[start:end] for text in map(compared_part, texts) for start, end in sentences.spans(text)]


def compared_part(text: str) -> str:
    """The part of a turn that is compared."""
    return text if len(text) <= 2 * HEARD else f"{text[:HEARD]}\n{text[-HEARD:]}"


def _expresses(voice: SpokenWords, piece: StatementWord) -> bool:
    """Whether a side has the word, or its idea when one is written in Chinese or Japanese and the other is not."""
    if voice.says(piece):
        return True
    crosses = words.is_written_east(voice.text) != piece.is_east
    return crosses and not words.concepts_of(piece.text).isdisjoint(voice.concepts)


def has_word_of(text: str, statement: str) -> bool:
    """Whether a text, however long, holds the statement word for word, or has a code, a number, or a word or idea
    beyond plain words of it."""
    if statement and fold(statement) in fold(compared_part(text)):
        return True
    parts, voice = words.of(statement), SpokenWords([compared_part(text)])
    if any(voice.has_code(code) for code in parts.codes):
        return True
    if parts.quantities.numbers and parts.quantities.numbers & quantities.of(compared_part(text)).numbers:
        return True
    pieces = [piece for piece in parts.pieces if not piece.is_plain]
    return any(voice.says(piece) or words.concepts_of(piece.text) & voice.concepts for piece in pieces)


def is_assent(text: str) -> bool:
    """Whether the text only agrees ("yes please", "sounds good", 好的 …, in eight languages), which states nothing."""
    if len(text) > _LONGEST_ASSENT or _QUESTION_OR_NUMBER.search(text):
        return False
    folded = fold(text)
    rest = folded if folded.isascii() else _NOT_WORDS.sub(" ", _ASSENT_EAST.sub(" ", folded))
    found = [word.replace("’", "'") for word in _LATIN.findall(rest)]
    return all(word in _ASSENT_WORDS for word in found) if found else bool(_LATIN.search(folded))
