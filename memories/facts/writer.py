"""Writes what was decided about a candidate: the fact, what it replaces, its evidence, and the question if it waits."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from memories import conf
from memories.exceptions import DuplicateFact, RefusedBefore
from memories.facts import review_items, timeline
from memories.facts.candidate import Candidate, Citation
from memories.facts.decision import Action, Decision
from memories.facts.policies import Policy
from memories.facts.review_items import REASON_OF_FLAG, ReviewQuestion
from memories.facts.timeline import Interval
from memories.facts.write import FactWrite
from memories.models import (
    Change,
    EndUser,
    ExtractionRun,
    Fact,
    FactEvidence,
    FactRelation,
    RelationType,
    ReviewItem,
    Status,
)
from memories.profiles import is_field_key
from memories.trust import rank

Reason = ReviewItem.Reason
# For each near fact that nobody judged a person is asked about the pair: the nearest ones are enough.
MOST_DUPLICATES = 2


class TextTaken(Exception):
    """Somebody else has stored the same text meanwhile."""


@dataclass
class FactWriter:
    """Writes candidates of one person, by an extraction `run` if it is heard. `known` are the facts that they are
    compared with: new ones are added. Facts in `touched` count no further mention.

    Where keys are compared each new fact is saved at once, because later ones are compared with it; otherwise flush()
    saves them together, in a few statements.
    """

    person: EndUser
    write: FactWrite
    policy: Policy
    known: list[Fact]
    run: ExtractionRun | None = None
    touched: set[uuid.UUID] = field(default_factory=set)
    _new: list[tuple[Fact, Candidate]] = field(default_factory=list)
    _questions: list[ReviewQuestion] = field(default_factory=list)

    def apply(self, decision: Decision, candidate: Candidate) -> tuple[Fact | None, str]:
        """Do what was decided; returns the fact that the candidate became or joined, and what was done, as a run counts
        it. Errors: DuplicateFact with the id of the fact that has this text, RefusedBefore, TextTaken."""
        match decision.action:
            case Action.REPORT_DUPLICATE if decision.target:
                raise duplicate(decision.target, candidate)
            case Action.REPORT_REFUSED:
                raise RefusedBefore
            case Action.SKIP:
                return None, _left(decision.target)
            case Action.REINFORCE if decision.target:
                return decision.target, self._restate(decision.target, candidate, decision)
            case Action.REFINE if decision.target:
                return decision.target, self._refine(decision.target, candidate)
            case _ if decision.joins:
                return self._join(decision.joins, candidate, decision)
            case _:
                return self._make(candidate, decision)

    def ask_about_near(self, fact: Fact, near: Sequence[Fact]) -> None:
        """Ask whether a new fact repeats one of these, the nearest first."""
        for other in near[:MOST_DUPLICATES]:
            self._questions.append(ReviewQuestion(Reason.NOT_JUDGED, fact=fact, known=other))

    def confirm(self, fact: Fact, moments: Sequence[datetime], citations: Sequence[Citation]) -> str:
        """The fact was said again at these moments, and nothing new about it; what was done."""
        return self._extend_times(fact, moments, citations, lambda: None)

    def cite(self, *cited: tuple[Fact, Sequence[Citation]]) -> None:
        """Let each fact rest on these, but for what it rests on already."""
        now = self.write.now
        rows = [
            FactEvidence(tenant_id=fact.tenant_id, fact=fact, created_at=one.since or now, **one.place)
            for fact, citations in cited
            for one in citations
        ]
        FactEvidence.objects.bulk_create(rows, ignore_conflicts=True)

    def relate(self, *related: tuple[Fact, str, Fact]) -> None:
        """State these relations, but for those that are stated already."""
        rows = [
            FactRelation(tenant_id=fact.tenant_id, fact=fact, target=target, type=kind, created_at=self.write.now)
            for fact, kind, target in related
            if target != fact
        ]
        FactRelation.objects.bulk_create(rows, ignore_conflicts=True)

    def flush(self) -> None:
        """Save the new facts with their evidence and relations, and ask what is to be asked. Errors: TextTaken."""
        self._save_new()
        review_items.ask_all(self._questions, run=self.run, now=self.write.now)
        self._questions = []

    def _make(self, candidate: Candidate, decision: Decision) -> tuple[Fact, str]:
        """Make it a fact, and supersede what it replaces."""
        is_held, interval = decision.action == Action.HOLD, decision.interval
        fact = candidate.fact(self.person, status=Status.PENDING if is_held else Status.ACTIVE, now=self.write.now)
        if interval:
            timeline.close(fact, interval, candidate.moments(self.write.now))
        self._new.append((fact, candidate))
        if self.policy.compares_keys or decision.supersedes:
            # What they name has to be there.
            self._save_new()
        self.known.append(fact)
        self.touched.add(fact.pk)
        if interval:
            self.known.extend(insert_before(interval, self.write, by=fact, verb=self.policy.verb))
        self._apply_consequences(fact, candidate, decision)
        return fact, "older" if interval else _held_as(decision) if is_held else "stored"

    def _join(self, suggestion: Fact, candidate: Candidate, decision: Decision) -> tuple[Fact | None, str]:
        """A suggestion of the same text becomes what the candidate would, unless it has more trust."""
        if rank(candidate.trust) < rank(suggestion.trust):
            return None, "outranked"
        is_held = decision.action == Action.HOLD
        done = self._reinforce(suggestion, candidate, Status.PENDING if is_held else Status.ACTIVE)
        self._apply_consequences(suggestion, candidate, decision)
        if is_held and done != "repeated":
            done = "reinforced" if _held_as(decision) == "suggested" else "conflicts"
        return suggestion, done if is_held or done == "repeated" else "confirmed"

    def _restate(self, fact: Fact, candidate: Candidate, decision: Decision) -> str:
        """Reinforce the existing fact: keep its text and add this statement's evidence.

        A protected fact and one of more trust stay as they are (rules.md, 4.3 and 5.5).
        """
        if fact.protected or rank(candidate.trust) < rank(fact.trust):
            return _left(fact)
        done = self._reinforce(fact, candidate, Status.ACTIVE)
        interval = decision.interval
        before = interval.before if interval and fact is interval.after else None
        if before and before is not fact and not before.protected and rank(candidate.trust) >= rank(before.trust):
            end(before, self.write, by=fact)
        self._apply_consequences(fact, candidate, decision)
        return done

    def _apply_consequences(self, fact: Fact, candidate: Candidate, decision: Decision) -> None:
        """What follows for other facts, for refusals, and for who decides."""
        for other in decision.supersedes:
            # What it is made of was true until now.
            is_merged = other in candidate.merges
            ended = None if is_merged else fact.valid_from
            self.write.supersede(other, by=fact, ended=ended, verb=self.policy.superseded)
            if not is_merged:
                self.write.relate(fact, other, RelationType.CONTRADICTS)
        self.relate(
            *((fact, RelationType.CONTRADICTS, other) for other in decision.contradicts),
            *((fact, RelationType.RELATED_TO, other) for other in decision.related),
        )
        self.write.remove_refusals(self.person, decision.ends_refusals)
        if decision.reason:
            # A question for each flag as well, which names no other fact where the fact waits for something else.
            of_flags = [REASON_OF_FLAG[flag] for flag in fact.flags if flag in REASON_OF_FLAG]
            known = decision.target if decision.reason in of_flags and self.policy.is_heard else None
            self._questions.append(ReviewQuestion(decision.reason, fact=fact, known=decision.target))
            self._questions += [
                ReviewQuestion(reason, fact=fact, known=known) for reason in of_flags if reason != decision.reason
            ]

    def _reinforce(self, fact: Fact, candidate: Candidate, status: Status) -> str:
        moments = candidate.moments(self.write.now)

        def state_again() -> None:
            fact.stated_confidence = max(fact.stated_confidence, candidate.confidence)
            fact.expires_at = _later_expiry(fact, candidate, moments[-1], now=self.write.now)
            if candidate.valid_from:
                fact.valid_from = min(fact.valid_from, candidate.valid_from)
            # Else whoever stated it could not find it again.
            fact.external_id = fact.external_id or candidate.external_id
            if self.policy.is_heard:
                _take_over(fact, candidate, status)
            else:
                fact.trust = max(fact.trust, candidate.trust, key=rank)
            fact.triples = fact.triples or candidate.triples_beside(fact.key, fact.value)
            if is_field_key(candidate.key) and not is_field_key(fact.key):
                # It was stored before the tenant had the profile, or under a usual key.
                fact.category, fact.key, fact.value = candidate.category, candidate.key, candidate.value

        return self._extend_times(fact, moments, candidate.citations, state_again)

    def _extend_times(
        self, fact: Fact, moments: Sequence[datetime], citations: Sequence[Citation], change: Callable[[], None]
    ) -> str:
        """One more mention of the fact. Two wordings in one batch are one, and only date it."""
        is_touched = fact.pk in self.touched
        dates = (fact.first_observed_at, fact.last_confirmed_at)
        if not is_touched or min(moments) < dates[0] or max(moments) > dates[1]:
            with self.write.changing(fact, "reinforce"):
                if not is_touched:
                    fact.confirm(conf.rules(self.person.tenant).confirmed_by)
                    fact.mentions += 1
                fact.extend_times(moments)
                if not is_touched:
                    change()
        self.touched.add(fact.pk)
        self.cite((fact, citations))
        return "repeated" if is_touched else "reinforced"

    def _refine(self, fact: Fact, candidate: Candidate) -> str:
        """The fact takes the more exact text with its stated confidence. Errors: TextTaken."""
        moments = candidate.moments(self.write.now)
        try:
            with self.write.changing(fact, "refine"):
                if fact.pk not in self.touched:
                    fact.confirm(conf.rules(self.person.tenant).confirmed_by)
                    fact.mentions += 1
                    fact.extend_times(moments)
                _take_text(fact, candidate, _later_expiry(fact, candidate, moments[-1], now=self.write.now))
        except DuplicateFact as error:
            fact.refresh_from_db()
            raise TextTaken from error
        self.touched.add(fact.pk)
        self.cite((fact, candidate.citations))
        return "refined"

    def _save_new(self) -> None:
        new, self._new = self._new, []
        if not new:
            return
        try:
            # A savepoint: the text that is taken is looked for afterwards.
            with transaction.atomic():
                self.write.insert([fact for fact, _ in new], self.policy.verb)
        except IntegrityError as error:
            raise TextTaken from error
        self.cite(*((fact, candidate.citations) for fact, candidate in new))
        self.relate(*((fact, kind, target) for fact, candidate in new for kind, target in candidate.relations))


def _left(fact: Fact | None) -> str:
    """Why nothing was written of a candidate that says what this fact says; None: it was refused."""
    if fact is None:
        return "dropped_after_refusal"
    return "operator_word" if fact.protected else "outranked"


def _held_as(decision: Decision) -> str:
    is_suggested = decision.reason and review_items.KIND_OF[decision.reason] != ReviewItem.Kind.CONFLICT
    return "suggested" if is_suggested else "conflicts"


def duplicate(fact: Fact, candidate: Candidate) -> DuplicateFact:
    """That the fact has the candidate's text, or else its external id."""
    if bytes(fact.content_hash) == candidate.content_hash:
        return DuplicateFact(fact_id=fact.pk)
    return DuplicateFact(_("The person already has a fact with this external_id."), fact_id=fact.pk)


def insert_before(interval: Interval, write: FactWrite, *, by: Fact, verb: str = "add") -> list[Fact]:
    """A closed fact came between two statements: the earlier one ends where it begins. If both are of one fact, that
    one becomes two; returns what is new."""
    before, made = interval.before, list[Fact]()
    if before and not before.protected:
        if before is interval.after:
            made.append(split(before, write, by=by, verb=verb))
        else:
            end(before, write, by=by)
    write.relate(interval.after, by, RelationType.CONTRADICTS)
    if before:
        write.relate(by, next(iter(made), before), RelationType.CONTRADICTS)
    return made


def end(fact: Fact, write: FactWrite, *, by: Fact) -> None:
    """The fact held until `by` did, unless it ended before."""
    if timeline.ends_at(fact, by=by):
        write.supersede(fact, by=by, ended=by.valid_from, verb="supersede")


def split(fact: Fact, write: FactWrite, *, by: Fact, verb: str) -> Fact:
    """The fact was stated before and after `by`: the earlier part becomes a fact of its own, which a revert trashes."""
    rules = conf.rules(fact.tenant)
    with write.changing(fact, "split"):
        earlier, older = timeline.split(fact, by=by, confirmed_by=rules.confirmed_by, now=write.now)
        earlier.refresh_decay(now=write.now, rules=rules)
        write.insert([earlier], verb)
        write.facts.add(earlier.pk)
        FactEvidence.objects.filter(pk__in=older).update(fact=earlier)
        for row in older:
            write.record_row_change(Change.Table.EVIDENCE, Change.Action.CHANGED, row, before={"fact": str(fact.pk)})
    for predecessor in timeline.predecessors(fact, earlier=earlier, by=by):
        write.supersede(predecessor, by=earlier, ended=predecessor.valid_to)
    return earlier


def _later_expiry(fact: Fact, candidate: Candidate, stated_at: datetime, *, now: datetime) -> datetime | None:
    """The latest statement says until when it holds, at least as long as was said before; one without an end takes the
    end away. An older statement changes nothing, and what is heard no date that somebody set until it has passed."""
    is_set = candidate.extraction and fact.extraction_id is None and fact.expires_at and fact.expires_at > now
    if fact.expires_at is None or is_set or stated_at < fact.last_confirmed_at:
        return fact.expires_at
    return max(fact.expires_at, candidate.expires_at) if candidate.expires_at else None


def _take_over(fact: Fact, candidate: Candidate, status: Status) -> None:
    """The person's own statement replaces what others, or the rules mode, suggested in the same words."""
    approves = fact.status == Status.PENDING and status == Status.ACTIVE
    if fact.status == Status.SUPERSEDED or (rank(candidate.trust) <= rank(fact.trust) and not approves):
        return
    fact.importance, fact.tags = candidate.importance, list(candidate.tags)
    fact.category, fact.key, fact.value = candidate.category, candidate.key, candidate.value
    fact.confidence = fact.stated_confidence = candidate.confidence
    fact.status, fact.flags, fact.triples = status, list(candidate.flags), None
    fact.structured, fact.source_error = candidate.structured, candidate.source_error
    # It is found by its quote, too.
    _take_source(fact, candidate)
    fact.set_text(fact.content)
    fact.extraction = candidate.extraction


def _take_text(fact: Fact, candidate: Candidate, expires_at: datetime | None) -> None:
    if candidate.key:
        kept = fact.value if (fact.category, fact.key) == (candidate.category, candidate.key) else ""
        fact.category, fact.key, fact.value = candidate.category, candidate.key, candidate.value or kept
    fact.confidence = fact.stated_confidence = candidate.confidence
    fact.importance, fact.expires_at = max(fact.importance, candidate.importance), expires_at
    fact.source_error = candidate.source_error or fact.source_error
    fact.structured = {**(fact.structured or {}), **(candidate.structured or {})} or None
    _take_source(fact, candidate)
    fact.set_text(candidate.content)
    fact.triples = candidate.triples_beside(fact.key, fact.value)
    # The text is this run's now: whoever asks what rests on its conversation finds the fact.
    fact.extraction, fact.extractor = candidate.extraction, candidate.extractor
    fact.prompt_version = candidate.prompt_version


def _take_source(fact: Fact, candidate: Candidate) -> None:
    fact.trust, fact.source, fact.raw = candidate.trust, candidate.source, candidate.raw
