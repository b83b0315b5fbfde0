"""The gossip of the replay: nothing of its junk is served; what is honest is."""

from evals import gossip, replay
from evals.gossip import JUNK
from memories.conf import Rules
from memories.models import Role, Status, Turn
from memories.reconcile import gate
from memories.reconcile.gate import Accepted, BatchEvidence
from memories.text.transcript import TranscriptTurn
from tests.each import each

RULES = Rules(debounce_seconds=30, max_wait_seconds=300, lease_seconds=120, max_attempts=5)
SAID = "I have sung in a choir since the spring of 2019."
TURNS = [
    TranscriptTurn(Turn(number=n, role=role, content=SAID), SAID) for n, role in ((1, Role.ASSISTANT), (2, Role.USER))
]
EVIDENCE = BatchEvidence(fed={turn.number: turn for turn in TURNS}, tool_numbers=frozenset())


def is_served(raw: gossip.Fact) -> bool:
    judged = gate.judge(raw, index=0, evidence=EVIDENCE, rules=RULES)
    return isinstance(judged, Accepted) and judged.status == Status.ACTIVE


def test_what_is_honest_is_served() -> None:
    assert is_served(gossip.fact(SAID, [2], quote=SAID))


@each("kind", JUNK)
def test_junk_is_not(kind: str) -> None:
    junk = JUNK[kind](2, SAID, 1)
    assert not is_served(junk)
    assert replay.MARK.match(junk["content"])
