"""The one road by which statements become facts, whoever makes them: compare, decide, write, one after the other."""

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from memories import conf
from memories.exceptions import CapacityReached
from memories.facts import existing
from memories.facts.candidate import Candidate
from memories.facts.decision import Action, Decision, decide
from memories.facts.existing import ExistingFacts
from memories.facts.policies import Capacity, Policy
from memories.facts.write import FactWrite
from memories.facts.writer import FactWriter, TextTaken
from memories.models import EndUser, ExtractionRun, Fact, FactQuerySet, Status


@dataclass(frozen=True)
class Recorded:
    """What became of a candidate: the decision, the fact that it became or joined (None when nothing is stored), and
    what was done, as a run counts it."""

    candidate: Candidate
    decision: Decision
    fact: Fact | None
    done: str

    @property
    def is_new(self) -> bool:
        return self.fact is not None and self.decision.action != Action.REINFORCE


@dataclass(frozen=True)
class Recorder:
    """Decides about candidates one after the other, so that later ones see what earlier ones wrote; flush() ends it."""

    existing: ExistingFacts
    writer: FactWriter
    trusts_assistant: bool

    @classmethod
    def of(
        cls,
        candidates: Sequence[Candidate],
        *,
        person: EndUser,
        write: FactWrite,
        policy: Policy,
        visible: FactQuerySet | None = None,
        named: Collection[uuid.UUID] = (),
        run: ExtractionRun | None = None,
    ) -> "Recorder":
        """Load and lock what bears on the candidates, and the `named` facts; the caller holds the person's row."""
        known = existing.load(person, candidates, policy=policy, now=write.now, named=named, visible=visible)
        writer = FactWriter(person, write, policy, known.facts, run)
        return cls(known, writer, conf.rules(person.tenant).trust_assistant)

    def add(self, candidate: Candidate) -> Recorded:
        """Decide about one of them, and write what follows. Errors: as record()."""
        try:
            return self._add(candidate)
        except TextTaken:
            self.existing.add_twin(candidate)
            return self._add(candidate)

    def _add(self, candidate: Candidate) -> Recorded:
        policy, compared = self.existing.policy, self.existing.compare(candidate)
        decision = decide(candidate, compared, policy, trusts_assistant=self.trusts_assistant)
        fact, done = self.writer.apply(decision, candidate)
        if fact and decision.action == Action.STORE and policy.asks_near:
            # Others are served what says the same.
            self.writer.ask_about_near(fact, [*compared.same, *compared.near])
        return Recorded(candidate, decision, fact, done)


def record(
    candidates: Sequence[Candidate],
    *,
    person: EndUser,
    write: FactWrite,
    policy: Policy,
    visible: FactQuerySet | None = None,
) -> list[Recorded]:
    """Decide about each candidate by the policy, and write what follows; the caller holds the person's row.

    Facts that are stated again are among the `visible` ones; None: all of the person's. Facts of the same texts whose
    end has passed go to the trash first.

    Errors: DuplicateFact and RefusedBefore, where the policy reports them; CapacityReached; TextTaken when somebody who
    does not hold the person's row stored a text meanwhile, where keys are not compared.
    """
    digests: dict[str, list[bytes]] = {}
    for one in candidates:
        digests.setdefault(one.agent_id, []).append(one.content_hash)
    for agent_id, of_agent in digests.items():
        write.sweep(person, of_agent, agent_id=agent_id)
    recorder = Recorder.of(candidates, person=person, write=write, policy=policy, visible=visible)
    done = [recorder.add(one) for one in candidates]
    if policy.capacity == Capacity.ERROR:
        _check_capacity(person, done, write)
    recorder.writer.flush()
    return done


def _check_capacity(person: EndUser, done: Sequence[Recorded], write: FactWrite) -> None:
    """Errors: CapacityReached when the new active facts would exceed what a person can have."""
    capacity = conf.rules(person.tenant).capacity
    wanted = sum(one.is_new and one.fact is not None and one.fact.status == Status.ACTIVE for one in done)
    active = Fact.objects.of(person.tenant, person).active(now=write.now)
    if capacity and wanted and active.count() + wanted > capacity:
        message = _(
            "A person can have %(capacity)d active facts. "
            "These %(wanted)d new ones would exceed that, and the least important would be archived at once."
        )
        raise CapacityReached(message % {"capacity": capacity, "wanted": wanted})
