"""Facts that are stated outright, by a key or an operator, instead of being extracted."""

import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from memories import audit, conf
from memories.audit import Actor
from memories.curation import item_states
from memories.curation.change_sets import ChangeSet
from memories.curation.contradictions import Met, meet
from memories.curation.fact_changes import lock_person
from memories.curation.people_errors import PersonMerged
from memories.curation.scrubbing import without_secrets
from memories.exceptions import DuplicateFact, PersonRestricted
from memories.models import EndUser, Fact, MemoryScope, ReviewItem, Source, Status, Trust
from memories.models.folding import fold, text_digest
from memories.pipeline import neighbours, review_items
from memories.pipeline.desk import MOST_DUPLICATES
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


def add_fact(*, end_user: EndUser, draft: FactDraft, actor: Actor, now: datetime, reason: str = "") -> Fact:
    """Store a stated fact, without secrets. Errors: DuplicateFact with the id of the one that says so;
    PersonRestricted.

    It is active, in the place of what said otherwise of its key. A key's statement that was refused before,
    contradicts an operator or is less sure than what is known is pending, and a question waits for an operator.
    """
    draft = replace(draft, **without_secrets(vars(draft)))
    fact = _fact(end_user, draft, actor=actor, now=now)
    # Before the lock: it may ask an endpoint.
    near = [] if draft.agent_id else neighbours.beside(person=end_user, statement=fact, now=now)
    changes = ChangeSet(actor=actor, now=now, reason=reason)
    try:
        with transaction.atomic():
            # Two statements about one key, or one and an extraction, follow each other.
            if lock_person(end_user.pk) != end_user.pk:
                raise PersonMerged
            if EndUser.objects.filter(pk=end_user.pk, restricted_at__isnull=False).exists():
                raise PersonRestricted
            twin = _same_text(end_user, draft)
            if twin:
                raise DuplicateFact(fact_id=twin)
            met = meet(end_user, fact, now=now)
            _store(fact, met, changes)
            if not met.reason:
                _ask_about_near(fact, [*met.agreeing, *_active(end_user, near, but=met.beaten)], now=now)
            audit.record(actor=actor, verb="add", target=fact, object_id=fact.pk, tenant=end_user.tenant, now=now)
    except IntegrityError as error:
        # Somebody stored the same text between the look above and our insert.
        raise DuplicateFact(fact_id=_same_text(end_user, draft)) from error
    return fact


def _store(fact: Fact, met: Met, changes: ChangeSet) -> None:
    """Write the fact and what becomes of those that it met, as one change set."""
    fact.status = Status.PENDING if met.reason else Status.ACTIVE
    fact.save(force_insert=True)
    audit.revise(
        fact=fact,
        verb="add",
        actor=changes.actor,
        before={},
        reason=changes.reason,
        now=changes.now,
        change_set=changes.id,
    )
    for known in met.beaten:
        changes.supersede(known, by=fact)
    item_states.settle(changes)
    if met.reason:
        review_items.ask(Question(met.reason, fact=fact, known=met.known), run=None, now=changes.now)


def _active(end_user: EndUser, ids: Collection[uuid.UUID], *, but: Iterable[Fact]) -> list[Fact]:
    """Those of the facts that still hold, the nearest first."""
    if not ids:
        return []
    facts = Fact.objects.of(end_user.tenant, end_user).filter(pk__in=ids, status=Status.ACTIVE)
    found = facts.exclude(pk__in=[fact.pk for fact in but]).in_bulk()
    return [found[fact_id] for fact_id in ids if fact_id in found]


def _ask_about_near(fact: Fact, near: Iterable[Fact], *, now: datetime) -> None:
    """Whether it says what one of these says already; the nearest tell enough."""
    for known in list(near)[:MOST_DUPLICATES]:
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
    )
    fact.say(draft.content)
    fact.begin(now=now, rules=conf.rules(end_user.tenant))
    return fact
