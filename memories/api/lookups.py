"""One look-up per kind of object, always by (tenant, id): what is another tenant's was never there."""

import uuid
from typing import TypeVar

from django.db.models import OuterRef, Prefetch, QuerySet, Subquery

from memories.exceptions import NotFound, PersonRestricted
from memories.models import (
    EmbeddingSpace,
    EndUser,
    Episode,
    EpisodeVector,
    ExtractionRun,
    Fact,
    FactEvidence,
    FactQuerySet,
    FactVector,
    PrivacyCase,
    PrivacyExport,
    Session,
    Tenant,
)

Told = TypeVar("Told", Fact, Episode, Session)
# The model that serves, once the present text of a fact or an episode has its vector.
_SERVING = {"text_digest": OuterRef("content_hash"), "space__state": EmbeddingSpace.State.SERVING}
_EMBEDDED_BY = Subquery(FactVector.objects.filter(fact=OuterRef("pk"), **_SERVING).values("space__model"))
_EPISODE_EMBEDDED_BY = Subquery(EpisodeVector.objects.filter(episode=OuterRef("pk"), **_SERVING).values("space__model"))


def person(*, tenant: Tenant, user_id: str) -> EndUser:
    """The end user whom the caller calls `user_id`. Errors: NotFound."""
    found = known_person(tenant=tenant, user_id=user_id)
    if found is None:
        raise NotFound
    return found


def known_person(*, tenant: Tenant, user_id: str) -> EndUser | None:
    """The same, None for an unknown one: their lists are empty."""
    found = EndUser.objects.called(tenant, user_id).first()
    if found:
        found.tenant = tenant
    return found


def told_person(*, tenant: Tenant, user_id: str) -> EndUser | None:
    """The same, None for a restricted one as well: nothing is told of them."""
    found = known_person(tenant=tenant, user_id=user_id)
    return None if found and found.restricted_at else found


def tell(row: Told) -> Told:
    """The row, if it may be told to a key. Errors: PersonRestricted."""
    if row.end_user.restricted_at:
        raise PersonRestricted
    return row


def session(*, tenant: Tenant, session_id: uuid.UUID) -> Session:
    """Errors: NotFound."""
    found = sessions(tenant).select_related("working_memory").filter(pk=session_id).first()
    if found is None:
        raise NotFound
    return found


def sessions(tenant: Tenant) -> QuerySet[Session]:
    """A tenant's sessions with all that an answer shows of them."""
    return Session.objects.filter(tenant=tenant).select_related("queue", "tenant", "end_user")


def fact(*, tenant: Tenant, fact_id: uuid.UUID) -> Fact:
    """Errors: NotFound."""
    found = facts(tenant).filter(pk=fact_id).first()
    if found is None:
        raise NotFound
    return found


def facts(tenant: Tenant) -> FactQuerySet:
    """A tenant's facts with all that an answer shows of them."""
    evidence = Prefetch("evidence", queryset=FactEvidence.objects.select_related("session"))
    older = Prefetch("older", queryset=Fact.objects.only("superseded_by").order_by("pk"))
    facts = Fact.objects.filter(tenant=tenant).annotate(embedding_model=_EMBEDDED_BY)
    return facts.select_related("end_user").prefetch_related(evidence, "relations", older)


def episode(*, tenant: Tenant, episode_id: uuid.UUID) -> Episode:
    """Errors: NotFound."""
    found = episodes(tenant).filter(pk=episode_id).first()
    if found is None:
        raise NotFound
    return found


def episodes(tenant: Tenant) -> QuerySet[Episode]:
    """A tenant's episodes with all that an answer shows of them."""
    episodes = Episode.objects.filter(tenant=tenant).annotate(embedding_model=_EPISODE_EMBEDDED_BY)
    return episodes.select_related("end_user", "session")


def extraction(*, tenant: Tenant, run_id: uuid.UUID) -> ExtractionRun:
    """Errors: NotFound."""
    found = extractions(tenant).filter(pk=run_id).first()
    if found is None:
        raise NotFound
    return found


def extractions(tenant: Tenant) -> QuerySet[ExtractionRun]:
    """A tenant's extraction runs with all that an answer shows of them."""
    return ExtractionRun.objects.filter(tenant=tenant).select_related("session", "end_user")


def case(*, tenant: Tenant, case_id: uuid.UUID) -> PrivacyCase:
    """Errors: NotFound."""
    exports = Prefetch("exports", queryset=PrivacyExport.objects.defer("content"))
    cases = PrivacyCase.objects.filter(tenant=tenant).defer("needles").prefetch_related(exports)
    found = cases.select_related("end_user__merged_into").filter(pk=case_id).first()
    if found is None:
        raise NotFound
    return found
