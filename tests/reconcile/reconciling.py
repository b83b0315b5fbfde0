"""What the tests of reconciliation share: whole attempts, attempts with judgements, and looks at what they left."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from memories.extraction import consolidation, gathering
from memories.facts.candidate import NearbyFact, Verdict
from memories.llm.prompts.memory_update import MemoryUpdate
from memories.models import EndUser, ExtractionRun, Fact, FactRelation, ReviewItem
from memories.queue import queue_rows, session_queue
from memories.reconcile import gate, reconcile
from memories.reconcile.changes import Outcome
from tests import factories
from tests.factories import NOW
from tests.model import Model

LATER = NOW + timedelta(days=10)
SAID = (
    ("user", "I live in Leiden and drink tea; at times in Paris, Utrecht or Delft"),
    ("assistant", "Noted"),
    ("tool", "42"),
    ("user", "我住在杭州"),
)
# What ends "Drinks coffee" and nothing else.
OVER = (("user", "I don't drink coffee any more, in Leiden I drink tea"), *SAID[1:])
CITY = {"category": "identity", "key": "home_city"}


def attempt(
    model: Model, person: EndUser, said: Any, *new_facts: Any, now: datetime = NOW, **rest: Any
) -> ExtractionRun:
    """Post these turns in a session of their own, and extract them with this answer of the model."""
    model.say(*new_facts, **rest)
    session = factories.session(person, said, flush=True)
    run = consolidation.consolidate(session_id=session.pk, now=now)
    assert run
    assert run.status == "committed", run.failure
    return run


class Extractor:
    """Posts turns for one person and extracts them with the answer that the model is told to give."""

    def __init__(self, model: Model, person: EndUser) -> None:
        self.model, self.person = model, person

    def __call__(self, *new_facts: Any, said: Any = SAID, now: datetime = NOW, **rest: Any) -> ExtractionRun:
        return attempt(self.model, self.person, said, *new_facts, now=now, **rest)


def reconcile_near(
    person: EndUser, *new_facts: Any, near: Mapping[int, Sequence[NearbyFact]], now: datetime = NOW
) -> Outcome:
    """Commit candidates about what SAID says, with judgements on what lies near them."""
    session = factories.session(person, SAID, flush=True)
    claim = session_queue.claim(session.pk)
    assert claim
    batch = gathering.gather(claim=claim, now=now)
    run = factories.run(session, first_number=batch.first_number, last_number=batch.last_number, started_at=now)
    answer = MemoryUpdate(new_facts=list(new_facts))
    admitted = gate.admit(answer.new_facts, evidence=batch.evidence, rules=claim.rules)
    with transaction.atomic():
        queue = queue_rows.fence(claim)
        outcome = reconcile.apply(run=run, batch=batch, answer=answer, admitted=admitted, near=near, now=now)
        session_queue.finish(claim, queue, extracted_number=batch.last_number, now=now)
    return outcome


def near(fact: Fact, verdict: Verdict, *, refused: bool = False) -> NearbyFact:
    """A pair as it was judged on the fact's present text."""
    return NearbyFact(fact.pk, bytes(fact.content_hash), 0.9, verdict, refused)


def facts(person: EndUser, **by: Any) -> list[Fact]:
    return list(Fact.objects.filter(end_user=person, **by).order_by("created_at", "pk"))


def only(person: EndUser, **by: Any) -> Fact:
    (fact,) = facts(person, **by)
    return fact


def state(fact: Fact) -> dict[str, Any]:
    return dict(Fact.objects.filter(pk=fact.pk).values().get())


def items(person: EndUser) -> list[tuple[str, str, Fact | None, Fact | None]]:
    """Open questions: kind, reason, what is proposed, what it stands against."""
    waiting = ReviewItem.objects.waiting().filter(end_user=person).order_by("kind", "reason", "known__content")
    return [(item.kind, item.reason, item.fact, item.known) for item in waiting.select_related("fact", "known")]


def relations(fact: Fact) -> list[tuple[str, Fact]]:
    rows = FactRelation.objects.filter(fact=fact).select_related("target")
    return [(row.type, row.target) for row in rows]
