"""Writes to single facts by an extraction run: each leaves evidence and a revision."""

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from django.db import IntegrityError, transaction

from memories import audit, conf
from memories.audit import Actor
from memories.facts import timeline
from memories.facts.candidate import Candidate
from memories.facts.timeline import Interval
from memories.graph import naming
from memories.models import ExtractionRun, Fact, FactEvidence, FactRelation, RelationType, Status
from memories.reconcile import stated_triples
from memories.reconcile.gate import Accepted
from memories.trust import rank


class TextTaken(Exception):
    """Somebody else has stored the same text meanwhile."""


@dataclass(frozen=True)
class Writer:
    """The run that writes, the turns that its batch can cite and when they were sent, and the time of the writing."""

    run: ExtractionRun
    turn_ids: Mapping[int, uuid.UUID]
    sent_at: Mapping[int, datetime]
    now: datetime

    def times_of(self, turns: Iterable[int]) -> list[datetime]:
        """When these turns were sent, in order; all of them before the run began, whatever the clocks say."""
        return sorted(min(self.sent_at[number], self.run.started_at) for number in turns)

    def store(self, candidate: Accepted) -> Fact:
        """Insert a new fact. Errors: TextTaken."""
        fact = self._new(candidate)
        try:
            # A savepoint: a duplicate text must not fail the batch.
            with transaction.atomic():
                fact.save(force_insert=True)
        except IntegrityError as error:
            raise TextTaken from error
        self.cite(fact, candidate)
        self._revise(fact, "extract", before={})
        return fact

    def insert(self, candidate: Accepted, place: Interval) -> list[Fact]:
        """Insert a fact that is closed already: what followed it is known. Returns it, and what was split off.

        What was said before it ends where it begins; a fact that was stated before and after it becomes two.
        """
        fact = self._new(candidate)
        timeline.close(fact, place, self.times_of(candidate.cited))
        fact.save(force_insert=True)
        self.cite(fact, candidate)
        self._revise(fact, "extract", before={})
        if place.before is place.after:
            return [fact, self._split(place.after, by=fact)]
        if place.before:
            self.end(place.before, by=fact)
        return [fact]

    def end(self, fact: Fact, *, by: Fact) -> None:
        """The fact held until `by` did, unless it ended before."""
        if timeline.ends_at(fact, by=by):
            self._close(fact, "supersede", by=by, ended=by.valid_from)

    def date(self, fact: Fact, turns: Iterable[int]) -> None:
        """It was said at further moments of a batch that it was counted for."""
        before, was = audit.snapshot(fact), (fact.first_observed_at, fact.last_confirmed_at)
        fact.mention(self.times_of(turns))
        if (fact.first_observed_at, fact.last_confirmed_at) != was:
            self._save(fact, "reinforce", before)

    def reinforce(self, fact: Fact, candidate: Accepted) -> None:
        """The fact was stated again: confidence, mentions and last confirmation rise, and it decays later."""
        before = audit.snapshot(fact)
        self._confirm(fact, candidate.cited)
        fact.stated_confidence = max(fact.stated_confidence, candidate.confidence)
        fact.expires_at = self._later_expiry(fact, candidate)
        self._raise_trust(fact, candidate)
        fact.triples = fact.triples or self._triples(candidate, fact)
        self._save(fact, "reinforce", before)
        self.cite(fact, candidate)

    def confirm(self, fact: Fact, turns: Sequence[int]) -> None:
        """The same, if nothing new was stated about it."""
        before = audit.snapshot(fact)
        self._confirm(fact, turns)
        self._save(fact, "reinforce", before)
        self.cite_turns(fact, turns)

    def refine(self, fact: Fact, candidate: Accepted, *, is_mention: bool) -> None:
        """The fact takes the more exact text with its stated confidence. Errors: TextTaken."""
        before = audit.snapshot(fact)
        if is_mention:
            self._confirm(fact, candidate.cited)
        self._take_text(fact, candidate)
        try:
            with transaction.atomic():
                self._save(fact, "refine", before)
        except IntegrityError as error:
            fact.refresh_from_db()
            raise TextTaken from error
        self.cite(fact, candidate)

    def supersede(self, fact: Fact, *, by: Fact) -> None:
        """The fact no longer holds: it stays, closed, and names its successor."""
        self._close(fact, "supersede", by=by, ended=by.valid_from)

    def remove(self, fact: Fact, *, by: Fact | None, reason: str, turns: Sequence[int]) -> None:
        """The fact no longer holds; `turns` are the evidence."""
        self._close(fact, "remove", by=by, ended=by.valid_from if by else self.times_of(turns)[-1], reason=reason)
        self.cite_turns(fact, turns)

    def archive(self, fact: Fact) -> None:
        """The person has too many facts: it is kept, but not served any more."""
        before = audit.snapshot(fact)
        fact.status = Status.ARCHIVED
        self._save(fact, "archive", before)

    def relate(self, fact: Fact, kind: RelationType, targets: Iterable[Fact]) -> None:
        rows = [
            FactRelation(tenant_id=fact.tenant_id, fact=fact, target=target, type=kind, created_at=self.now)
            for target in targets
        ]
        if rows:
            FactRelation.objects.bulk_create(rows, ignore_conflicts=True)

    def cite(self, fact: Fact, candidate: Accepted) -> None:
        self._cite(fact, candidate.cited, {candidate.quoted: candidate.quote})

    def cite_turns(self, fact: Fact, turns: Iterable[int]) -> None:
        self._cite(fact, turns, {})

    def _cite(self, fact: Fact, turns: Iterable[int], quotes: Mapping[int | None, str]) -> None:
        rows = [
            FactEvidence(
                tenant_id=fact.tenant_id,
                fact=fact,
                turn_id=self.turn_ids[number],
                session_id=self.run.session_id,
                turn_number=number,
                quote=quotes.get(number, ""),
                created_at=self.now,
            )
            for number in turns
        ]
        FactEvidence.objects.bulk_create(rows, ignore_conflicts=True)

    def _new(self, candidate: Accepted) -> Fact:
        run, person = self.run, self.run.end_user
        # It is loaded already.
        person.tenant = run.tenant
        stated = Candidate(
            content=candidate.content,
            category=candidate.category,
            key=candidate.key,
            value=candidate.value,
            raw=candidate.quote,
            confidence=candidate.confidence,
            importance=candidate.importance,
            tags=candidate.tags,
            structured=candidate.structured,
            source=candidate.source,
            source_error=candidate.source_error,
            trust=candidate.trust,
            flags=candidate.flags,
            agent_id=run.owner,
            extractor=run.extractor,
            prompt_version=run.prompt_version,
            extraction=run,
            stated_at=self.times_of(candidate.cited),
            expires_at=self._expiry(candidate),
        )
        fact = stated.fact(person, status=candidate.status, now=self.now)
        fact.triples = self._triples(candidate, fact)
        return fact

    @cached_property
    def _called(self) -> Callable[[str], str]:
        """What the graph calls somebody whom the batch names."""
        return naming.caller(self.run.end_user)

    def _triples(self, candidate: Accepted, fact: Fact) -> list[dict[str, Any]] | None:
        """The candidate's triples, as the fact keeps them."""
        if not candidate.triples:
            return None
        return stated_triples.of_person(candidate.triples, self._called, key=fact.key, value=fact.value)

    def _confirm(self, fact: Fact, turns: Iterable[int]) -> None:
        fact.confirm(conf.rules(self.run.tenant).confirmed_by)
        fact.mentions += 1
        fact.mention(self.times_of(turns))

    def _raise_trust(self, fact: Fact, candidate: Accepted) -> None:
        """The person's own statement replaces what others, or the rules mode, suggested in the same words."""
        approves = (fact.status, candidate.status) == (Status.PENDING, Status.ACTIVE)
        is_closed = fact.status == Status.SUPERSEDED
        if is_closed or (rank(candidate.trust) <= rank(fact.trust) and not approves):
            return
        fact.category, fact.key, fact.value = candidate.category, candidate.key, candidate.value
        fact.importance, fact.tags, fact.source_error = candidate.importance, candidate.tags, candidate.source_error
        fact.trust, fact.source, fact.status = candidate.trust, candidate.source, candidate.status
        fact.confidence = fact.stated_confidence = candidate.confidence
        fact.raw, fact.flags = candidate.quote, list(candidate.flags)
        fact.structured, fact.triples = candidate.structured, None
        # It is found by its quote, too.
        fact.say(fact.content)
        fact.extraction = self.run

    def _split(self, fact: Fact, *, by: Fact) -> Fact:
        before, rules = audit.snapshot(fact), conf.rules(self.run.tenant)
        earlier, older = timeline.split(fact, by=by, confirmed_by=rules.confirmed_by, now=self.now)
        earlier.refresh_decay(now=self.now, rules=rules)
        earlier.save(force_insert=True)
        self._revise(earlier, "extract", before={})
        FactEvidence.objects.filter(pk__in=older).update(fact=earlier)
        self._save(fact, "reinforce", before)
        for predecessor in timeline.predecessors(fact, earlier=earlier, by=by):
            self._close(predecessor, "supersede", by=earlier, ended=predecessor.valid_to or by.valid_from)
        return earlier

    def _take_text(self, fact: Fact, candidate: Accepted) -> None:
        if candidate.key:
            kept = fact.value if (fact.category, fact.key) == (candidate.category, candidate.key) else ""
            fact.category, fact.key, fact.value = candidate.category, candidate.key, candidate.value or kept
        fact.confidence = fact.stated_confidence = candidate.confidence
        fact.importance = max(fact.importance, candidate.importance)
        fact.expires_at = self._later_expiry(fact, candidate)
        fact.trust, fact.source, fact.raw = candidate.trust, candidate.source, candidate.quote
        fact.source_error = candidate.source_error or fact.source_error
        fact.structured = {**(fact.structured or {}), **(candidate.structured or {})} or None
        fact.say(candidate.content)
        fact.triples = self._triples(candidate, fact)
        # The text is this run's now: whoever asks what rests on its conversation finds the fact.
        run = self.run
        fact.extraction, fact.extractor, fact.prompt_version = run, run.extractor, run.prompt_version

    def _later_expiry(self, fact: Fact, candidate: Accepted) -> datetime | None:
        """The latest mention says how long a temporary fact lives; a date set by a caller stays until it has passed."""
        is_older = self.times_of(candidate.cited)[-1] < fact.last_confirmed_at
        if fact.expires_at is None or is_older or (fact.extraction_id is None and fact.expires_at > self.now):
            return fact.expires_at
        expiry = self._expiry(candidate)
        return max(fact.expires_at, expiry) if expiry else None

    def _expiry(self, candidate: Accepted) -> datetime | None:
        """A temporary fact lives from when it was said."""
        return self.times_of(candidate.cited)[-1] + candidate.expires_in if candidate.expires_in else None

    def _close(self, fact: Fact, verb: str, *, by: Fact | None, ended: datetime, reason: str = "") -> None:
        before = audit.snapshot(fact)
        # Without a successor it is no longer true all the same.
        fact.status = Status.SUPERSEDED if by else Status.ARCHIVED
        fact.valid_to, fact.superseded_by = max(fact.valid_from, ended), by
        self._save(fact, verb, before, reason)

    def _save(self, fact: Fact, verb: str, before: dict[str, object], reason: str = "") -> None:
        fact.version += 1
        fact.updated_at = self.now
        fact.refresh_decay(now=self.now, rules=conf.rules(self.run.tenant))
        fact.save()
        self._revise(fact, verb, before=before, reason=reason)

    def _revise(self, fact: Fact, verb: str, *, before: dict[str, object], reason: str = "") -> None:
        actor = Actor.run(self.run)
        audit.revise(fact=fact, verb=verb, actor=actor, before=before, reason=reason, now=self.now)
