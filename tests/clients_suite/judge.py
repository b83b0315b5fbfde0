"""What the hub made of a client's conversations: the person's words and no others."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.clients_suite.stage import Hub, Json
from tests.clients_suite.upstream import items, text_of

PERSON = "person"
# A shorter piece of a text says nothing about whose it is.
SHORTEST = 12
_TOLD = {"system", "developer", "user"}
_BLOCK = re.compile(r"<memory>.*?</memory>", re.DOTALL)
_ANSWERED = re.compile(r"^\W*(\[[^\]]*\]\s*)?(assistant|model)\b")
_SENTENCES = re.compile(r"[\n.!?;]+")


@dataclass
class Verdict:
    """Of one run of a client."""

    client: str
    mode: str
    # Why it could not be run to its end.
    broke: str = ""
    typed: int = 0
    said: int = 0
    sessions: int = 0
    expected_sessions: int = 0
    # The person's texts that are not stored as theirs, and stored ones that they did not type.
    lost: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    recalled: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        one_for_one = self.sessions == self.expected_sessions
        return one_for_one and not (self.broke or self.lost or self.foreign or self.facts or self.recalled)

    def as_json(self) -> Json:
        return {**asdict(self), "holds": self.holds}


def verdict(
    client: str, mode: str, hub: Hub, user_id: str, typed: Sequence[Sequence[str]], asked: list[Json]
) -> Verdict:
    """`typed`: what the person said in each conversation; `asked`: what the upstream was asked."""
    said = Counter(map(_plain, _spoken(hub, user_id)))
    told = Counter(_plain(text) for conversation in typed for text in conversation)
    lost, foreign = _unmatched(told, said)
    return Verdict(
        client,
        mode,
        typed=told.total(),
        said=said.total(),
        sessions=len(hub.sessions(user_id)),
        expected_sessions=len(typed),
        lost=lost,
        foreign=foreign,
        facts=[one["content"] for one in hub.facts(user_id) if _is_foreign(one["content"], told)],
        recalled=sorted(set(_recalled(hub, user_id, told, asked))),
    )


def _unmatched(told: Counter[str], said: Counter[str]) -> tuple[list[str], list[str]]:
    """What was lost and what is foreign. A turn keeps its text word for word, with a frame around the typed one."""
    lost, foreign = list((told - said).elements()), list((said - told).elements())
    for text in list(lost):
        around = next((one for one in foreign if text in one), None)
        if around is not None:
            foreign.remove(around)
            lost.remove(text)
    return lost, foreign


def _spoken(hub: Hub, user_id: str) -> Iterator[str]:
    """A turn of a hub that knows no authors counts as the person's."""
    for session in hub.sessions(user_id):
        for turn in hub.turns(session):
            if turn["role"] == "user" and turn.get("author", PERSON) == PERSON:
                yield text_of(turn["content"])


def _recalled(hub: Hub, user_id: str, told: Counter[str], asked: list[Json]) -> Iterator[str]:
    """Sentences of texts in role `user` that nobody typed, in what the hub told the model or would tell it."""
    sent = [text_of(one) for request in asked for one in items(request) if one.get("role") in _TOLD]
    # A block of memory stands before what a user says.
    texts = [_BLOCK.sub("", text_of(one)) for request in asked for one in items(request) if one.get("role") == "user"]
    harness = {piece for text in texts for piece in map(_plain, _SENTENCES.split(text)) if _is_foreign(piece, told)}
    # The block's own first line has many a single word, too, and a transcript names who speaks.
    harness = {piece for piece in harness if " " in piece and _is_foreign(piece.removeprefix("user "), told)}
    blocks = [block for text in sent for block in _BLOCK.findall(text)]
    for line in "\n".join(
        [*blocks, hub.memory(user_id, "What did I say, and what do you know about me?")]
    ).splitlines():
        if not _ANSWERED.match(line):
            plain = _plain(line)
            yield from (piece for piece in harness if piece in plain)


def _is_foreign(text: str, told: Counter[str]) -> bool:
    plain = _plain(text)
    return len(plain) >= SHORTEST and not any(plain in one for one in told)


def _plain(text: Any) -> str:
    """Letters and digits alone, so that blanks, quotes and full stops tell nothing apart."""
    return " ".join(re.findall(r"\w+", str(text).lower()))
