"""The tables of what models make of what people say (tests/tables/slips*.txt), and what the hub makes of it."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from memories.conf import Rules
from memories.models import Role, Status, Turn
from memories.reconcile import gate
from memories.reconcile.gate import Accepted, BatchEvidence
from memories.text.reading import endings
from memories.text.transcript import TranscriptTurn
from tests.model import candidate

TABLES = Path(__file__).parents[1] / "tables"
RULES = Rules(debounce_seconds=30, max_wait_seconds=300, lease_seconds=120, max_attempts=5)
# Of the slips so many may be believed, of the right answers so many may wait.
MOST = 0.03
TABLES_OF_SLIPS = ("slips", "slips_everyday", "slips_fresh")
REMOVAL, PROFILE = "removal", "profile"


class Slip(NamedTuple):
    """What somebody says, and what a model answers; `is_slip` where they did not say that."""

    kind: str
    language: str
    is_slip: bool
    said: str
    answer: str


def table(name: str) -> Iterator[Slip]:
    for line in (TABLES / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            head, said, answer = (cell.strip() for cell in line.split(" | "))
            kind, language, verdict = head.split()
            yield Slip(kind, language, verdict == "slip", said, answer)


def spoken(said: str) -> list[tuple[str, bool]]:
    """The turns of a conversation, and whether each is the assistant's."""
    return [(part.removeprefix("A: "), part.startswith("A: ")) for part in said.split(" // ")]


def turns(said: str) -> list[TranscriptTurn]:
    return [
        TranscriptTurn(
            turn=Turn(number=n, role=Role.ASSISTANT if is_assistants else Role.USER, content=text), text=text
        )
        for n, (text, is_assistants) in enumerate(spoken(said), start=1)
    ]


def evidence(said: str) -> BatchEvidence:
    return BatchEvidence(fed={turn.number: turn for turn in turns(said)}, tool_numbers=frozenset())


def is_believed(case: Slip) -> bool:
    """Whether the hub takes the model's word: the fact is active, or the known one goes."""
    heard = evidence(case.said)
    if case.kind == REMOVAL:
        return endings.is_over(case.answer, heard.heard)
    cited = [number for number, turn in heard.fed.items() if turn.is_user]
    judged = gate.judge(candidate(case.answer, evidence=cited), index=0, evidence=heard, rules=RULES)
    assert isinstance(judged, Accepted), judged
    return judged.status == Status.ACTIVE
