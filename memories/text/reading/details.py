"""Details of a statement that nobody said: somebody whom nobody named, one thing more than the person lists; pure."""

import re
from collections.abc import Iterable, Mapping, Sequence

from memories.text import sentences, words
from memories.text.reading import arrangements, moods, patterns, supporting
from memories.text.reading.supporting import Heard
from memories.text.words import SpokenWords, Statement, StatementWord

ADDED = "added"
_SHORT = 3
_HAS = re.compile(r"\W*(?:has|hat|tiene|a|il a|elle a|有|请了|雇了)(?:\s|(?=[\u3400-\u9fff]))", re.IGNORECASE)


def added(statement: str, heard: Heard) -> str:
    """A detail beside what was said: somebody whom nobody named, or one thing more than the person lists."""
    if _names_new_kin(statement, heard):
        return ADDED
    items = list(arrangements.items(statement))
    heard_text = heard.words.text
    if len(items) < 2:
        is_other = arrangements.other_relative(statement, heard_text)
        return ADDED if is_other and not _has_more(items, dict.fromkeys(items, True), heard) else ""
    supported = {
        item: False if arrangements.other_relative(item, heard_text) else _is_supported(item, heard) for item in items
    }
    if False not in supported.values() or True not in supported.values():
        return ""
    return "" if _has_more(items, supported, heard) else ADDED


def _has_more(items: Sequence[str], supported: Mapping[str, bool | None], heard: Heard) -> bool:
    """Whether the person lists something that none of the items repeats: one may say it in other words."""
    voices = [SpokenWords([item]) for item in items if supported[item]]
    for turn in heard.turns:
        for start, end in sentences.spans(turn):
            listed = [_telling(words.of(one).pieces) for one in arrangements.items(turn[start:end])]
            told = [any(supporting.says(voice, piece) for voice in voices for piece in pieces) for pieces in listed]
            if any(told) and any(pieces and not one for one, pieces in zip(told, listed, strict=True)):
                return True
    return False


def _telling(pieces: Iterable[StatementWord]) -> list[StatementWord]:
    return [piece for piece in pieces if not piece.is_plain]


def _names_new_kin(statement: str, heard: Heard) -> bool:
    found = [word for word in moods.kin_in(statement) if not moods.is_trade(word)]
    if not found or any(moods.kin_in(one) for one in [*heard.turns, *heard.known, *heard.questions.values()]):
        return False
    pieces = [piece for word in found for piece in words.of(word).pieces]
    return bool(pieces) and not any(supporting.says(heard.words, piece) for piece in pieces)


def _is_supported(item: str, heard: Heard) -> bool | None:
    """Whether the person has said a part of a list; None if it says nothing of its own."""
    statement = words.of(item)
    if any(heard.words.has_code(code) for code in statement.codes):
        return True
    return _is_supported_east(item, statement, heard) if arrangements.is_east(item) else _is_spelled(item, heard)


def _is_supported_east(item: str, statement: Statement, heard: Heard) -> bool | None:
    rest = arrangements.unsaid(item, heard.words.text)
    if rest and not _are_people(item):
        return bool(words.concepts_of(rest) & heard.words.concepts)
    return True if any(supporting.says(heard.words, piece) for piece in statement.pieces) else None


def _is_spelled(item: str, heard: Heard) -> bool | None:
    statement = words.of(item)
    full = [piece for piece in statement.pieces if len(piece.text) > _SHORT]
    dated = [word for word in words.number_words(item) if len(word) > _SHORT and word in heard.words.words]
    telling = _telling(statement.pieces)
    # Short verbs change their ends: "male" and "malt".
    if dated or any(supporting.says(heard.words, piece) or heard.words.begins_like(piece.text) for piece in telling):
        return True
    if statement.codes or statement.quantities.numbers or _are_people(item):
        return None
    told = [piece for piece in full[1:] if heard.words.says(piece)]
    if len(told) > 1 or any(not piece.is_plain for piece in told):
        # Its verb may be another one.
        return True
    if any(piece.is_distinctive for piece in statement.pieces) or moods.kin_in(item) or _is_new(full, item, heard):
        return False
    if any(heard.words.says(piece) for piece in full):
        return True
    # "… and hates cities": plain words, and a verb that says something of its own.
    return False if len(full) > 1 and any(one.against or one.says("verb") for one in moods.told(item)) else None


def _is_new(pieces: Sequence[StatementWord], item: str, heard: Heard) -> bool:
    return len(pieces) < _SHORT and any(_tells(piece, item, heard) for piece in pieces)


def _tells(piece: StatementWord, item: str, heard: Heard) -> bool:
    """Whether nobody said a word that is no plain one of their language, though it may be one of another."""
    languages = [name for name in patterns.languages_of(item, heard.languages) if name in heard.languages]
    return len(languages) == 1 and not (
        supporting.says(heard.words, piece) or patterns.is_everyday(piece.text, languages[0])
    )


def _are_people(item: str) -> bool:
    """Whether it names people of the person's, whom one calls by many words; not somebody whose trade it is."""
    found = moods.kin_in(item)
    if not found or any(map(moods.is_animal, found)):
        return False
    return not (_HAS.match(item) and all(map(moods.is_trade, found)))
