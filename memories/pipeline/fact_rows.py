"""Writes to single facts by an extraction run: each leaves evidence and a revision."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import IntegrityError, transaction

from memories import audit
from memories.audit import Actor
from memories.models import ExtractionRun, Fact, FactEvidence, Status
from memories.pipeline.gate import Accepted, rank

STEP = 0.05


@dataclass(frozen=True)
class Writer:
    """The run that writes, the turns that its batch can cite, and when."""

    run: ExtractionRun
    turn_ids: Mapping[int, uuid.UUID]
    now: datetime

    def store(self, candidate: Accepted) -> Fact | None:
        """Insert a new fact; None when somebody has stored the same text since the caller looked."""
        fact = self._new(candidate)
        try:
            # Its own savepoint: the text's uniqueness must not cost the batch.
            with transaction.atomic():
                fact.save(force_insert=True)
        except IntegrityError:
            return None
        self.cite(fact, candidate)
        audit.revise(fact=fact, verb="extract", actor=self._actor, before={}, reason="", now=self.now)
        return fact

    def reinforce(self, fact: Fact, candidate: Accepted) -> None:
        """The fact was said again: confidence, mentions and last confirmation rise, and it fades later."""
        before = audit.snapshot(fact)
        fact.confidence = min(1.0, fact.confidence + STEP)
        fact.stated_confidence = max(fact.stated_confidence, candidate.confidence)
        fact.mentions += 1
        fact.last_confirmed_at = self.now
        fact.expires_at = self._later_expiry(fact, candidate)
        self._raise_trust(fact, candidate)
        self._save(fact, "reinforce", before)
        self.cite(fact, candidate)

    def supersede(self, fact: Fact, *, by: Fact) -> None:
        """The fact no longer holds: it stays, closed, and names its successor."""
        before = audit.snapshot(fact)
        fact.status, fact.valid_to, fact.superseded_by = Status.SUPERSEDED, self.now, by
        self._save(fact, "supersede", before)

    @property
    def _actor(self) -> Actor:
        return Actor.run(self.run)

    def _new(self, candidate: Accepted) -> Fact:
        run, now = self.run, self.now
        fact = Fact(
            tenant_id=run.tenant_id,
            end_user_id=run.end_user_id,
            category=candidate.category,
            raw=candidate.quote,
            key=candidate.key,
            value=candidate.value,
            confidence=candidate.confidence,
            stated_confidence=candidate.confidence,
            importance=candidate.importance,
            tags=candidate.tags,
            source=candidate.source,
            source_error=candidate.source_error,
            trust=candidate.trust,
            status=candidate.status,
            flags=list(candidate.flags),
            extractor=run.extractor,
            prompt_version=run.prompt_version,
            extraction=run,
            created_at=now,
            updated_at=now,
            first_observed_at=now,
            last_confirmed_at=now,
            valid_from=now,
            expires_at=now + candidate.expires_in if candidate.expires_in else None,
        )
        fact.say(candidate.content)
        fact.refresh_decay(now=now)
        return fact

    def _raise_trust(self, fact: Fact, candidate: Accepted) -> None:
        """Somebody's own word takes the place of what others, or mere rules, suggested in the same words."""
        approves = (fact.status, candidate.status) == (Status.PENDING, Status.ACTIVE)
        if rank(candidate.trust) <= rank(fact.trust) and not approves:
            return
        fact.category, fact.key, fact.value = candidate.category, candidate.key, candidate.value
        fact.importance, fact.tags, fact.source_error = candidate.importance, candidate.tags, candidate.source_error
        fact.trust, fact.source, fact.status = candidate.trust, candidate.source, candidate.status
        fact.confidence = fact.stated_confidence = candidate.confidence
        fact.raw, fact.flags = candidate.quote, list(candidate.flags)
        fact.extraction = self.run

    def _later_expiry(self, fact: Fact, candidate: Accepted) -> datetime | None:
        """A temporary fact lives as long as its latest mention says; a date set by a caller stays until it is over."""
        if fact.expires_at is None or (fact.extraction_id is None and fact.expires_at > self.now):
            return fact.expires_at
        return max(fact.expires_at, self.now + candidate.expires_in) if candidate.expires_in else None

    def _save(self, fact: Fact, verb: str, before: dict[str, object]) -> None:
        fact.version += 1
        fact.updated_at = self.now
        fact.refresh_decay(now=self.now)
        fact.save()
        audit.revise(fact=fact, verb=verb, actor=self._actor, before=before, reason="", now=self.now)

    def cite(self, fact: Fact, candidate: Accepted) -> None:
        rows = [
            FactEvidence(
                fact=fact,
                turn_id=self.turn_ids[number],
                session_id=self.run.session_id,
                turn_number=number,
                quote=candidate.quote if number == candidate.quoted else "",
                created_at=self.now,
            )
            for number in candidate.cited
        ]
        FactEvidence.objects.bulk_create(rows, ignore_conflicts=True)
