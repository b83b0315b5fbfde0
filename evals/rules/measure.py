"""Labelled utterances through what the hub does with a turn: redaction, feed, rules, gate. No database, no model."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from memories.conf import Rules
from memories.extraction import rules_mode
from memories.models import Role, Status, Turn
from memories.reconcile import gate
from memories.reconcile.gate import BatchEvidence
from memories.text.secrets.redaction import redact_text
from memories.text.transcript import fed

HERE = Path(__file__).parent
PARTS = ("dev", "held_back")
KEEP, WAIT, LEAVE = "keep", "wait", "leave"
_RULES = Rules(debounce_seconds=30, max_wait_seconds=300, lease_seconds=120, max_attempts=5)


@dataclass(frozen=True)
class Utterance:
    """What a person says; `keep` says which words the active fact must hold."""

    label: str
    kind: str
    text: str
    words: str

    @property
    def language(self) -> str:
        return "en" if self.text.isascii() or max(self.text) < "一" else "zh"


@dataclass(frozen=True)
class Outcome:
    """What became of an utterance: the facts that are active, and those that wait for review."""

    utterance: Utterance
    active: tuple[str, ...]
    waiting: tuple[str, ...]

    @property
    def right(self) -> int:
        """How many of the active facts are what should be kept."""
        if self.utterance.label != KEEP:
            return 0
        return sum(self.utterance.words.casefold() in content.casefold() for content in self.active)

    @property
    def is_good(self) -> bool:
        if self.utterance.label == KEEP:
            return self.right > 0 and self.right == len(self.active)
        return not self.active and not (self.utterance.label == LEAVE and self.waiting)


@dataclass
class Figures:
    """Counts over some utterances."""

    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def to_keep(self) -> int:
        return sum(one.utterance.label == KEEP for one in self.outcomes)

    @property
    def kept(self) -> int:
        return sum(one.right > 0 for one in self.outcomes)

    @property
    def recall(self) -> float:
        return self.kept / self.to_keep if self.to_keep else 1.0

    @property
    def active(self) -> int:
        return sum(len(one.active) for one in self.outcomes)

    @property
    def precision(self) -> float:
        return sum(one.right for one in self.outcomes) / self.active if self.active else 1.0

    @property
    def harmless(self) -> int:
        return sum(one.utterance.label == LEAVE for one in self.outcomes)

    @property
    def suggested(self) -> int:
        """How many of the harmless ones leave something for review."""
        return sum(one.utterance.label == LEAVE and bool(one.waiting) for one in self.outcomes)


def utterances(part: str) -> Iterator[Utterance]:
    """Those of a part, in the order of its file."""
    for line in (HERE / f"{part}.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            head, text, words = (cell.strip() for cell in line.split("|"))
            label, kind = head.split()
            yield Utterance(label, kind, text.replace("\\n", "\n"), words)


def measure(utterance: Iterable[Utterance]) -> Figures:
    return Figures([outcome_of(one) for one in utterance])


def outcome_of(utterance: Utterance) -> Outcome:
    """What the hub keeps of it, said alone."""
    turn = Turn(number=1, role=Role.USER, content=redact_text(utterance.text)[0], metadata={})
    turns = list(fed([turn]))
    found = rules_mode.extract(turns)
    evidence = BatchEvidence(fed={one.number: one for one in turns}, tool_numbers=frozenset())
    candidates = gate.admit(found.new_facts, evidence=evidence, rules=_RULES, held=found.held).candidates
    active = tuple(one.content for one in candidates if one.status == Status.ACTIVE)
    return Outcome(utterance, active, tuple(one.content for one in candidates if one.status != Status.ACTIVE))
