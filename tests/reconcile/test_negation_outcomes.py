"""What becomes of facts that lie near each other, over whole attempts and with real vectors: nearness decides nothing.

Each pair belongs to a person of its own, who has the first fact and says the second.
"""

import re
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from django.conf import LazySettings

from memories import conf
from memories.exceptions import ModelUnavailable
from memories.extraction import consolidation
from memories.models import EndUser, Fact, FactEvidence, Tenant
from tests import factories, vectors
from tests.factories import NOW
from tests.model import Model, candidate
from tests.reconcile.reconciling import facts, items
from tests.tables.nearness import MISSED, OPPOSED, PARAPHRASES, Pair

pytestmark = pytest.mark.django_db
# Some of each language, with one that is not even proposed. That all others are: tests/reconcile/test_neighbours.py.
OPPOSITES, REWORDED = OPPOSED[5::6], PARAPHRASES[5::6]
# A candidate without a quote is 0.8 sure.
LESS_SURE, SURER = 0.7, 0.9
Judge = Callable[[str, str], str]
Ends = dict[Pair, str]


@pytest.fixture
def tenant(settings: LazySettings) -> Tenant:
    settings.MEMORYHUB_EMBEDDINGS = "local"
    return factories.tenant()


def knows(tenant: Tenant, content: str, confidence: float) -> EndUser:
    """Somebody who said this in an earlier session; with its vector."""
    person = factories.end_user(tenant)
    session = factories.session(person, [("user", "Hello")])
    fact = factories.fact(person, content, confidence=confidence)
    factories.evidence(fact, session.turns.get())
    vectors.embed_all(person)
    return person


def told(model: Model, judge: Judge) -> dict[str, Any]:
    """The judge's verdicts on the pairs of the question that was asked last."""
    asked = re.findall(r'<candidate n="(\d+)"[^>]* near="([\d,]+)">(.*)</candidate>', model.prompts[-1])
    known = dict(re.findall(r'<fact n="(\d+)"[^>]*>(.*)</fact>', model.prompts[-1]))
    return {
        "judgements": [
            {"candidate": int(number), "fact": int(fact), "verdict": judge(unescape(known[fact]), unescape(said))}
            for number, near, said in asked
            for fact in near.split(",")
        ]
    }


def extract(person: EndUser, said: str) -> None:
    session = factories.session(person, [("user", said), ("assistant", "Noted")], flush=True)
    run = consolidation.consolidate(session_id=session.pk, now=NOW)
    assert run
    assert run.status == "committed", run.failure


def ended(person: EndUser, pair: Pair) -> str:
    """What became of the two, in one word; every row of the person is looked at."""
    rows = {fact.content: fact for fact in facts(person)}
    known, newcomer = (rows.pop(content, None) for content in pair)
    assert known
    assert not rows
    if newcomer is None:
        return _alone(known, items(person))
    states = (known.status, known.superseded_by, newcomer.status, items(person))
    ends: dict[str, Any] = {
        "both": ("active", None, "active", []),
        "asked": ("active", None, "active", [("possible_duplicate", "not_judged", newcomer, known)]),
        "superseded": ("superseded", newcomer, "active", []),
        "waits": ("active", None, "pending", [("conflict", "less_sure", newcomer, known)]),
    }
    assert known.mentions == newcomer.mentions == 1
    return next((word for word, end in ends.items() if states == end), str(states))


def _alone(known: Fact, waiting: list[Any]) -> str:
    evidence = FactEvidence.objects.filter(fact=known).count()
    ended = (known.status, known.mentions, evidence, waiting)
    return {"('active', 2, 2, [])": "merged", "('active', 1, 1, [])": "unheard"}.get(str(ended), str(ended))


def ends(model: Model, tenant: Tenant, pairs: list[Pair], judge: Judge | None, confidence: float) -> Ends:
    """Of each pair; without a judge the call for one fails."""
    found = {}
    for pair in pairs:
        person = knows(tenant, pair[0], confidence)
        model.say(candidate(pair[1]))
        model.answers.append((lambda: told(model, judge)) if judge else ModelUnavailable())
        extract(person, pair[1])
        model.answers.clear()
        found[pair] = ended(person, pair)
    return found


def all_are(word: str, pairs: list[Pair]) -> Ends:
    """What is not even proposed stays beside what is known."""
    return {pair: "both" if pair in MISSED else word for pair in pairs}


def truth(known: str, said: str) -> str:
    return "contradicts" if (known, said) in OPPOSED else "same"


CASES: list[tuple[str, list[Pair], Judge | None, float, str]] = [
    ("opposites without a judge", OPPOSITES, None, LESS_SURE, "asked"),
    ("paraphrases without a judge", REWORDED, None, LESS_SURE, "asked"),
    ("of opposites one is served", OPPOSITES, truth, LESS_SURE, "superseded"),
    ("the less sure waits", OPPOSITES, truth, SURER, "waits"),
    ("paraphrases are one fact", REWORDED, truth, LESS_SURE, "merged"),
    ("however sure", REWORDED, truth, SURER, "merged"),
    # It is the verdict that merges or supersedes, not what is in the texts or how near they lie.
    ("unrelated opposites", OPPOSITES, lambda *_: "unrelated", LESS_SURE, "both"),
    ("unrelated paraphrases", REWORDED, lambda *_: "unrelated", LESS_SURE, "both"),
    ("opposites called the same", OPPOSITES, lambda *_: "same", LESS_SURE, "merged"),
    ("paraphrases called opposites", REWORDED, lambda *_: "contradicts", LESS_SURE, "superseded"),
]


@pytest.mark.parametrize(
    ("pairs", "judge", "confidence", "word"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_the_verdict_decides(
    model: Model, tenant: Tenant, pairs: list[Pair], judge: Judge | None, confidence: float, word: str
) -> None:
    assert ends(model, tenant, pairs, judge, confidence) == all_are(word, pairs)


def test_simple_rules_decide_nothing(model: Model, tenant: Tenant, settings: LazySettings) -> None:
    settings.MEMORYHUB_LLM = conf.LLM_RULES
    found = {}
    for known, said in OPPOSITES + REWORDED:
        person = knows(tenant, known, LESS_SURE)
        extract(person, f"Remember: {said}" if said.isascii() else f"请记住:{said}")
        found[known, said] = ended(person, (known, said))
    assert found == all_are("asked", OPPOSITES + REWORDED)
    assert model.prompts == []
