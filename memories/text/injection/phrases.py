"""Phrases that speak to a model, compiled from data/*.toml to patterns over folded texts; pure.

A phrase is written as it is said, with spaces between its parts: `word`, `wor*` (any ending), `(this|that one)`,
`{a group}` (among others, too: `(this|{group})`), `part?` (optional), `~4` (up to four words between, in Chinese and
Japanese characters) and `^` (where a clause begins). All patterns are bounded: a search takes time in proportion to the
text's length.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

from memories.text.injection.unmasking import fold

FOLDER = Path(__file__).parent / "data"

_USUAL_GAP = 4
_LONGEST_WORD = 60
_PART = re.compile(r"\{(?P<group>\w+)\}|\((?P<choice>[^()]*)\)|~(?P<gap>\d*)|(?P<start>\^)|(?P<word>[^ ?{}()~^]+)")
_GROUP = re.compile(r"\{(?P<name>\w+)\}")


@dataclass(frozen=True)
class Rule:
    """A claim that a sentence makes if `said` matches and `unless` does not.

    `needs`: bits of sets of words; the sentence must have a word of each. `is_own`: a clause about the speaker's own
    doings makes no such claim.
    """

    claim: str
    pattern: str
    needs: int
    exception: str
    is_own: bool

    # Compiled when first needed: all of them take a second.
    @cached_property
    def compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern)

    @cached_property
    def unless(self) -> re.Pattern[str] | None:
        return re.compile(self.exception) if self.exception else None


@dataclass(frozen=True)
class LanguageRules:
    """The rules of one language; `own` opens a clause about the speaker, unless `model` is in the sentence, and
    `reports` one about what somebody built, unless `urges` is.

    A word sets its bits in `whole`, and those of its beginnings in `stems`. Texts in characters have no words: there
    `stems` are searched anywhere, by their first character.
    """

    rules: tuple[Rule, ...]
    own: re.Pattern[str] | None
    model: re.Pattern[str] | None
    reports: re.Pattern[str] | None
    urges: re.Pattern[str] | None
    is_characters: bool
    whole: Mapping[str, int]
    stems: Mapping[str, int]
    lengths: tuple[int, ...]
    by_first: Mapping[str, Sequence[tuple[str, int]]]

    def is_report(self, clause: str, sentence: str = "") -> bool:
        """Whether the clause of a normalized sentence tells what somebody built: it speaks of a memory, not to one."""
        is_said = self.reports is not None and self.reports.match(clause) is not None
        return is_said and not (self.urges and self.urges.search(sentence or clause))

    def bits(self, words: Iterable[str], text: str) -> int:
        """The sets of words of which the text has a word."""
        found = 0
        if self.is_characters:
            for first in self.by_first.keys() & set(text):
                for stem, bits in self.by_first[first]:
                    found |= bits if stem in text else 0
            return found
        for word in words:
            found |= self.whole.get(word, 0)
            for length in self.lengths:
                found |= self.stems.get(word[:length], 0) if length <= len(word) else 0
        return found


@dataclass(frozen=True)
class Form:
    """A form that speaks to a model whatever its words: tags, markers of chat templates, written commands."""

    claim: str
    pattern: re.Pattern[str]


@cache
def forms() -> tuple[Form, ...]:
    """The forms of forms.toml, for folded text."""
    given = tomllib.loads((FOLDER / "forms.toml").read_text(encoding="utf-8"))
    return tuple(Form(one["claim"], re.compile("|".join(one["patterns"]), re.MULTILINE)) for one in given["form"])


@cache
def languages() -> tuple[LanguageRules, ...]:
    """The languages that have a file."""
    paths = sorted(path for path in FOLDER.glob("*.toml") if path.stem != "forms")
    return tuple(load(tomllib.loads(path.read_text(encoding="utf-8"))) for path in paths)


def load(given: Mapping[str, Any]) -> LanguageRules:
    """A language from a mapping like those of the files. Errors: KeyError, ValueError, re.error."""
    reader = _Reader(given.get("groups", {}), is_characters=given["script"] == "characters")
    rules = tuple(rule for entry in given["rule"] for rule in reader.rules(entry))
    return LanguageRules(
        rules=rules,
        own=reader.any_of(given.get("own", [])),
        reports=reader.any_of(given.get("reports", [])),
        urges=reader.any_of(given.get("urges", [])),
        model=reader.any_of(given.get("model", [])),
        is_characters=reader.is_characters,
        whole=reader.whole,
        stems=reader.stems,
        lengths=tuple(sorted(set(map(len, reader.stems)))),
        by_first={
            first: tuple(stems) for first, stems in groupby(sorted(reader.stems.items()), key=lambda stem: stem[0][:1])
        },
    )


class _Reader:
    """Compiles phrases, and collects the words that they need."""

    def __init__(self, groups: Mapping[str, str], *, is_characters: bool) -> None:
        self.is_characters = is_characters
        self.groups = groups
        self.whole: dict[str, int] = {}
        self.stems: dict[str, int] = {}
        self._bits: dict[str, int] = {}

    def rules(self, entry: Mapping[str, Any]) -> Iterator[Rule]:
        exception = "|".join(map(self.pattern, entry.get("unless", [])))
        for phrase in entry["said"]:
            needs = 0
            for part in _PART.finditer(phrase):
                is_optional = phrase[part.end() : part.end() + 1] == "?"
                if part["gap"] is None and not part["start"] and not is_optional:
                    needs |= self._bit(self._choice(part))
            yield Rule(entry["claim"], self.pattern(phrase), needs, exception, entry.get("own", True))

    def any_of(self, phrases: Sequence[str]) -> re.Pattern[str] | None:
        return re.compile("|".join(map(self.pattern, phrases))) if phrases else None

    def pattern(self, phrase: str) -> str:
        """The phrase as a regular expression over normalized sentences (detection.normalized)."""
        written, is_first = "", True
        for found in _PART.finditer(phrase):
            part, is_first = self._part(found, phrase, is_first=is_first)
            written += part
        return written

    def _part(self, found: re.Match[str], phrase: str, *, is_first: bool) -> tuple[str, bool]:
        """The pattern of one part with its separator, and whether the next part still has none before it."""
        between = "" if self.is_characters else "(?: ,){0,3} "
        if found["start"]:
            return (r"(?:\A|(?<=[, ]))" if self.is_characters else r"(?:\A|(?<=, ))"), True
        if found["gap"] is not None:
            most = int(found["gap"] or _USUAL_GAP)
            words = f".{{0,{most}}}?" if self.is_characters else rf"(?:{between}\w{{1,{_LONGEST_WORD}}}){{0,{most}}}?"
            return words, False
        choice = self._alternatives(self._choice(found))
        if phrase[found.end() : found.end() + 1] != "?":
            return (choice if is_first else between + choice), False
        return (f"(?:{choice}{between})?", True) if is_first else (f"(?:{between}{choice})?", False)

    def _alternatives(self, choice: str) -> str:
        words = sorted((self._folded(one) for one in choice.split("|")), key=len, reverse=True)
        if self.is_characters:
            return f"(?:{'|'.join(re.escape(word.replace(' ', '')) for word in words)})"
        escaped = (re.escape(word).replace(r"\*", r"\w{0,20}").replace(r"\ ", "(?: ,){0,3} ") for word in words)
        return rf"\b(?:{'|'.join(escaped)})\b"

    def _choice(self, found: re.Match[str]) -> str:
        if found["group"]:
            return self.groups[found["group"]]
        return _GROUP.sub(lambda group: self.groups[group["name"]], found["choice"] or found["word"])

    def _folded(self, text: str) -> str:
        return " ".join(fold(text).replace("'", " ").replace("’", " ").replace("-", " ").split())

    def _bit(self, choice: str) -> int:
        """The bit of this set of words; of an alternative with several words the first counts."""
        if choice not in self._bits:
            bit = self._bits[choice] = 1 << len(self._bits)
            for one in map(self._folded, choice.split("|")):
                first = one.replace(" ", "") if self.is_characters else one.split(" ")[0]
                kept = self.stems if self.is_characters or first.endswith("*") else self.whole
                word = first.removesuffix("*")
                kept[word] = kept.get(word, 0) | bit
        return self._bits[choice]
