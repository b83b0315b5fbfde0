"""Writes what was decided about a candidate: the fact, what it replaces, its evidence, and the question if it waits."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.utils.translation import gettext as _

from memories import conf
from memories.exceptions import DuplicateFact, RefusedBefore
from memories.facts import review_items, timeline
from memories.facts.candidate import Candidate
from memories.facts.decision import Action, Decision
from memories.facts.policies import Policy
from memories.facts.review_items import REASON_OF_FLAG, ReviewQuestion
from memories.facts.timeline import Interval
from memories.facts.write import FactWrite
from memories.models import Change, EndUser, Fact, FactEvidence, FactRelation, RelationType, ReviewItem, Status
from memories.trust import rank

Reason = ReviewItem.Reason
# For each near fact that nobody judged a person is asked about the pair: the nearest ones are enough.
MOST_DUPLICATES = 2


@dataclass
class FactWriter:
    """Writes candidates of one person. New facts are saved together by flush(), in a few statements."""

    person: EndUser
    write: FactWrite
    policy: Policy
    _new: list[tuple[Fact, Candidate]] = field(default_factory=list)
    _questions: list[ReviewQuestion] = field(default_factory=list)

    def apply(self, decision: Decision, candidate: Candidate) -> Fact | None:
        """Do what was decided; returns the fact that the candidate became or joined. Errors: DuplicateFact with the id
        of the fact that has this text, RefusedBefore."""
        match decision.action:
            case Action.REPORT_DUPLICATE if decision.target:
                raise duplicate(decision.target, candidate)
            case Action.REPORT_REFUSED:
                raise RefusedBefore
            case Action.SKIP:
                return None
            case Action.REINFORCE if decision.target:
                return self._reinforce(decision.target, candidate, decision)
            case _:
                return self._make(candidate, decision)

    def ask_about_near(self, fact: Fact, near: Sequence[Fact]) -> None:
        """Ask whether a new fact repeats one of these, the nearest first."""
        for other in near[:MOST_DUPLICATES]:
            self._questions.append(ReviewQuestion(Reason.NOT_JUDGED, fact=fact, known=other))

    def flush(self) -> None:
        """Save the new facts with their evidence and relations, and ask what is to be asked. Errors: IntegrityError,
        when somebody else has stored the text of one of them."""
        new, self._new = self._new, []
        if new:
            self.write.insert([fact for fact, _ in new], self.policy.verb)
            self._cite(new)
        review_items.ask_all(self._questions, run=None, now=self.write.now)
        self._questions = []

    def _make(self, candidate: Candidate, decision: Decision) -> Fact:
        """Make it a fact, and supersede what it replaces."""
        status = Status.PENDING if decision.action == Action.HOLD else Status.ACTIVE
        fact = candidate.fact(self.person, status=status, now=self.write.now)
        if decision.action == Action.CLOSE and decision.interval:
            timeline.close(fact, decision.interval, candidate.moments(self.write.now))
        self._new.append((fact, candidate))
        if decision.reason:
            self._ask(decision.reason, fact, decision.target)
        if decision.supersedes or decision.interval:
            # What they name has to be there.
            self.flush()
        self._supersede(decision.supersedes, candidate, by=fact)
        if decision.action == Action.CLOSE and decision.interval:
            insert_before(decision.interval, self.write, by=fact)
        self.write.remove_refusals(self.person, decision.ends_refusals)
        return fact

    def _supersede(self, facts: Sequence[Fact], candidate: Candidate, *, by: Fact) -> None:
        for fact in facts:
            # What it is made of was true until now.
            is_merged = fact in candidate.merges
            ended = None if is_merged else by.valid_from
            self.write.supersede(fact, by=by, ended=ended, verb=self.policy.superseded)
            if not is_merged:
                self.write.relate(by, fact, RelationType.CONTRADICTS)

    def _reinforce(self, fact: Fact, candidate: Candidate, decision: Decision) -> Fact:
        """Reinforce the existing fact: keep its text and add this statement's evidence.

        A protected fact and one of more trust stay as they are (rules.md, 4.3 and 5.5).
        """
        if fact.protected or rank(candidate.trust) < rank(fact.trust):
            return fact
        moments = candidate.moments(self.write.now)
        with self.write.changing(fact, "reinforce"):
            fact.confirm(conf.rules(fact.tenant).confirmed_by)
            fact.stated_confidence = max(fact.stated_confidence, candidate.confidence)
            fact.expires_at = _later_expiry(fact, candidate, moments[-1])
            fact.mentions += 1
            fact.mention(moments)
            if candidate.valid_from:
                fact.valid_from = min(fact.valid_from, candidate.valid_from)
            fact.trust = max(fact.trust, candidate.trust, key=rank)
            # Else whoever stated it could not find it again.
            fact.external_id = fact.external_id or candidate.external_id
        self._cite([(fact, candidate)])
        self._supersede(decision.supersedes, candidate, by=fact)
        interval = decision.interval
        if interval and (before := interval.before) and fact is interval.after and not before.protected:
            end(before, self.write, by=fact)
        self.write.remove_refusals(self.person, decision.ends_refusals)
        return fact

    def _ask(self, reason: Reason, fact: Fact, known: Fact | None) -> None:
        """Ask why it waits; a flag is asked about by itself when the fact waits for something else, too."""
        self._questions.append(ReviewQuestion(reason, fact=fact, known=known))
        others = [REASON_OF_FLAG[flag] for flag in fact.flags if flag in REASON_OF_FLAG]
        self._questions += [ReviewQuestion(other, fact=fact) for other in others if other != reason]

    def _cite(self, stated: Sequence[tuple[Fact, Candidate]]) -> None:
        """Store what the candidates rest on, but for what their facts rest on already."""
        now = self.write.now
        evidence = [
            FactEvidence(tenant_id=fact.tenant_id, fact=fact, created_at=one.since or now, **one.place)
            for fact, candidate in stated
            for one in candidate.citations
        ]
        relations = [
            FactRelation(tenant_id=fact.tenant_id, fact=fact, target=target, type=kind, created_at=now)
            for fact, candidate in stated
            for kind, target in candidate.relations
            if target != fact
        ]
        FactEvidence.objects.bulk_create(evidence, ignore_conflicts=True)
        FactRelation.objects.bulk_create(relations, ignore_conflicts=True)


def duplicate(fact: Fact, candidate: Candidate) -> DuplicateFact:
    """That the fact has the candidate's text, or else its external id."""
    if bytes(fact.content_hash) == candidate.content_hash:
        return DuplicateFact(fact_id=fact.pk)
    return DuplicateFact(_("The person already has a fact with this external_id."), fact_id=fact.pk)


def insert_before(interval: Interval, write: FactWrite, *, by: Fact) -> None:
    """A closed fact came between two statements: the earlier one ends where it begins. If both are of one fact, that
    one becomes two."""
    if interval.before and not interval.before.protected:
        if interval.before is interval.after:
            split(interval.after, write, by=by)
        else:
            end(interval.before, write, by=by)


def end(fact: Fact, write: FactWrite, *, by: Fact) -> None:
    """The fact held until `by` did, unless it ended before."""
    if timeline.ends_at(fact, by=by):
        write.supersede(fact, by=by, ended=by.valid_from)


def split(fact: Fact, write: FactWrite, *, by: Fact) -> None:
    """The fact was stated before and after `by`: the earlier part becomes a fact of its own, which a revert trashes."""
    rules = conf.rules(fact.tenant)
    with write.changing(fact, "split"):
        earlier, older = timeline.split(fact, by=by, confirmed_by=rules.confirmed_by, now=write.now)
        earlier.refresh_decay(now=write.now, rules=rules)
        write.insert([earlier])
        write.facts.add(earlier.pk)
        FactEvidence.objects.filter(pk__in=older).update(fact=earlier)
        for row in older:
            write.note(Change.Table.EVIDENCE, Change.Action.CHANGED, row, before={"fact": str(fact.pk)})
    for predecessor in timeline.predecessors(fact, earlier=earlier, by=by):
        write.supersede(predecessor, by=earlier, ended=predecessor.valid_to)


def _later_expiry(fact: Fact, candidate: Candidate, stated_at: datetime) -> datetime | None:
    """The latest statement says until when it holds, at least as long as was said before; one without an end takes the
    end away. An older statement changes nothing."""
    if fact.expires_at is None or stated_at < fact.last_confirmed_at:
        return fact.expires_at
    return max(fact.expires_at, candidate.expires_at) if candidate.expires_at else None
