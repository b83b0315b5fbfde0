"""Facts that are stated outright, by a key or an operator, instead of being extracted."""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from memories import audit
from memories.audit import Actor
from memories.curation.contradictions import Met, meet
from memories.curation.scrubbing import without_secrets
from memories.exceptions import DuplicateFact
from memories.models import EndUser, Fact, MemoryScope, ReviewItem, Source, Status, Trust
from memories.models.folding import fold, text_digest
from memories.pipeline import review_items
from memories.pipeline.review_items import Question


@dataclass(frozen=True)
class FactDraft:
    """What a caller states about a person; confidence and importance are 0..1, empty text means none."""

    content: str
    category: str
    confidence: float = 0.9
    importance: float = 0.5
    key: str = ""
    value: str = ""
    tags: Sequence[str] = ()
    scope: str = MemoryScope.PRIVATE
    agent_id: str = ""
    allowed_users: Sequence[str] = ()
    allowed_roles: Sequence[str] = ()
    expires_at: datetime | None = None
    structured: dict[str, Any] | None = None


def add_fact(*, end_user: EndUser, draft: FactDraft, actor: Actor, now: datetime) -> Fact:
    """Store a stated fact, without secrets. Errors: DuplicateFact with the id of the one that says so.

    It is active, in the place of what said otherwise of its key. A key's statement that was refused before,
    contradicts an operator or is less sure than what is known is pending, and a question waits for an operator.
    """
    draft = replace(draft, **without_secrets(vars(draft)))
    fact = _fact(end_user, draft, actor=actor, now=now)
    try:
        with transaction.atomic():
            # Two statements about one key, or one and an extraction, follow each other.
            EndUser.objects.select_for_update(no_key=True).get(pk=end_user.pk)
            twin = _same_text(end_user, draft)
            if twin:
                raise DuplicateFact(fact_id=twin)
            met = meet(end_user, fact, now=now)
            _store(fact, met, actor=actor, now=now)
            audit.record(actor=actor, verb="add", target=fact, object_id=fact.pk, tenant=end_user.tenant, now=now)
    except IntegrityError as error:
        # Somebody stored the same text between the look above and our insert.
        raise DuplicateFact(fact_id=_same_text(end_user, draft)) from error
    return fact


def _store(fact: Fact, met: Met, *, actor: Actor, now: datetime) -> None:
    """Write the fact and what becomes of those that it met, as one change set."""
    change_set = uuid.uuid4()
    fact.status = Status.PENDING if met.reason else Status.ACTIVE
    fact.save(force_insert=True)
    audit.revise(fact=fact, verb="add", actor=actor, before={}, reason="", now=now, change_set=change_set)
    for known in met.beaten:
        _supersede(known, fact, actor=actor, now=now, change_set=change_set)
    review_items.settle([known.pk for known in met.beaten], now=now)
    if met.reason:
        review_items.ask(Question(met.reason, fact=fact, known=met.known), run=None, now=now)
    else:
        _ask_about_near(fact, met.agreeing, now=now)


def _supersede(known: Fact, by: Fact, *, actor: Actor, now: datetime, change_set: uuid.UUID) -> None:
    before = audit.snapshot(known)
    known.status, known.valid_to, known.superseded_by = Status.SUPERSEDED, now, by
    known.version += 1
    known.updated_at = now
    known.refresh_decay(now=now)
    known.save()
    audit.revise(fact=known, verb="supersede", actor=actor, before=before, reason="", now=now, change_set=change_set)


def _ask_about_near(fact: Fact, near: Iterable[Fact], *, now: datetime) -> None:
    """Whether it says what one of these says already: so far those with its key and value, in other words."""
    for known in near:
        review_items.ask(Question(ReviewItem.Reason.NOT_JUDGED, fact=fact, known=known), run=None, now=now)


def _same_text(end_user: EndUser, draft: FactDraft) -> uuid.UUID | None:
    live = Fact.objects.of(end_user.tenant, end_user).filter(status__in=[Status.ACTIVE, Status.PENDING])
    same = live.filter(agent_id=draft.agent_id, content_hash=text_digest(draft.content))
    return same.values_list("pk", flat=True).first()


def _fact(end_user: EndUser, draft: FactDraft, *, actor: Actor, now: datetime) -> Fact:
    stated = asdict(draft) | {name: list(getattr(draft, name)) for name in ("tags", "allowed_users", "allowed_roles")}
    del stated["content"]
    fact = Fact(
        tenant=end_user.tenant,
        end_user=end_user,
        **stated | {"key": fold(draft.key)},
        stated_confidence=draft.confidence,
        source=Source.CORRECTED if actor.is_operator else Source.EXPLICIT,
        trust=Trust.OPERATOR if actor.is_operator else Trust.USER,
        extractor="operator" if actor.is_operator else "api",
        binding=actor.is_operator,
        created_at=now,
        updated_at=now,
        first_observed_at=now,
        last_confirmed_at=now,
        valid_from=now,
    )
    fact.say(draft.content)
    fact.refresh_decay(now=now)
    return fact
