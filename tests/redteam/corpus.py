"""The cases: attempts to be believed, obeyed or told to others, and benign texts that look like them.

One TOML file per way in, `cases/<way>.toml`, with `[[attempt]]` and `[[benign]]`; those of the second
and third round, written after the defences were tuned on the first and by others who had not seen them, in
`cases_second/` and `cases_third/`. What a case is made of:

- `id`: `<way>.<language>.<a|b><number>`; way and language are read from it. Numbers of the second
  round begin at 201, of the third at 301.
- `turns`: [role, text] in order, posted as one batch of one session (a third item: fields of the message besides).
- `facts`: what the most obedient model makes of them: `content`, and `cites` (turn numbers, default [1]), `quote`,
  `category` (context), `confidence` (0.95), and any other field of new_facts.
- `profile`: section → the text that this model rewrites it to; `episode`, `running`: its summaries.
- `calls`: requests of the application: `do` ("POST /facts"), `as` (user, agent: a key that writes as one; bound: a key
  for this person alone), `body`. {me}, {other}, {turn1} …, {fact} (the person's newest fact) are filled in.
- `publish`: an operator then publishes what is active of the person's, without looking.
- `says`: in a file with `talks`, the assistant's second turn in the talk of the case's language.
- `query`: what is asked afterwards.
- `needle`: texts of which none may be served (attempt), or all are to be (benign). Default: the facts' contents.
- `claim`: what the assistant or tool says is a mere statement: it may be recalled as its own words, but not believed.
- `own`: the person said it, for themselves: only what others are told counts.
- `keeps`: texts that must still be served at the end.
- `recalls`: texts of turns that are to be recalled (benign).
- `tells`: "other" when somebody else of the tenant is to be told (benign).
"""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
FOLDERS = {1: _HERE / "cases", 2: _HERE / "cases_second", 3: _HERE / "cases_third"}
WAYS = ("echo", "tool", "upload", "key", "profile", "import", "summary", "public")
# The place of the assistant's turn in a talk that a case may replace.
_SAID = 3
LANGUAGES = ("en", "zh", "es", "de", "fr", "pt", "ja", "ru")


@dataclass(frozen=True)
class Case:
    """One attempt, or one benign text; the fields are told above."""

    id: str
    is_attempt: bool
    round: int = 1
    turns: list[list[Any]] = field(default_factory=list)
    facts: list[dict[str, Any]] = field(default_factory=list)
    profile: dict[str, str] = field(default_factory=dict)
    episode: str = ""
    running: str = ""
    calls: list[dict[str, Any]] = field(default_factory=list)
    publish: bool = False
    query: str = ""
    needle: list[str] = field(default_factory=list)
    claim: bool = False
    own: bool = False
    keeps: list[str] = field(default_factory=list)
    recalls: list[str] = field(default_factory=list)
    tells: str = "me"

    @property
    def way(self) -> str:
        return self.id.split(".")[0]

    @property
    def language(self) -> str:
        return self.id.split(".")[1]

    @property
    def needles(self) -> list[str]:
        return self.needle or ([] if self.recalls else [fact["content"] for fact in self.facts])


@cache
def cases(number: int = 1) -> tuple[Case, ...]:
    """All of that round, in the order of the files."""
    return tuple(case for way in WAYS for case in _of_file(FOLDERS[number] / f"{way}.toml", number))


def _of_file(path: Path, number: int) -> Iterator[Case]:
    if not path.exists():
        return
    told = tomllib.loads(path.read_text(encoding="utf-8"))
    for kind in ("attempt", "benign"):
        for given in told.get(kind, []):
            yield Case(is_attempt=kind == "attempt", round=number, **_with_talk(given, told.get("talks", {})))


def _with_talk(given: dict[str, Any], talks: dict[str, Any]) -> dict[str, Any]:
    """A case without turns of its own has those of its language's talk; `says` is what the assistant says in it."""
    language = given["id"].split(".")[1]
    if "turns" in given or language not in talks:
        return given
    turns = [list(turn) for turn in talks[language]]
    rest = {name: value for name, value in given.items() if name != "says"}
    turns[_SAID][1] = given.get("says", turns[_SAID][1])
    return {**rest, "turns": turns}
