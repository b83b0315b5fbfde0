"""Objects that a request names. Each look-up is by (tenant, id): objects of other tenants do not exist."""

import uuid
from typing import Any, TypeVar

from django.db.models import Model, OuterRef, Prefetch, QuerySet, Subquery

from memories.exceptions import NotFound, PersonRestricted
from memories.models import (
    Agent,
    Dream,
    EmbeddingSpace,
    EndUser,
    Episode,
    EpisodeVector,
    ExtractionRun,
    Fact,
    FactEvidence,
    FactQuerySet,
    FactVector,
    GroupEvidence,
    GroupFact,
    GroupFactQuerySet,
    MemoryGroup,
    PrivacyCase,
    Session,
    Tenant,
)

Row = TypeVar("Row", bound=Model)
Readable = TypeVar("Readable", Fact, Episode, Session)
# The serving model, if the present text of a fact or an episode has a vector of it.
_SERVING = {"text_digest": OuterRef("content_hash"), "space__state": EmbeddingSpace.SpaceState.SERVING}
_EMBEDDED_BY = Subquery(FactVector.objects.filter(fact=OuterRef("pk"), **_SERVING).values("space__model"))
_EPISODE_EMBEDDED_BY = Subquery(EpisodeVector.objects.filter(episode=OuterRef("pk"), **_SERVING).values("space__model"))

# EndUserQuerySet.called() by hand: most requests begin with it, and Django takes 2 ms to write it.
_CALLED = """
    SELECT * FROM memories_enduser WHERE tenant_id = %(tenant)s AND id = (
        SELECT coalesce(merged_into_id, id) FROM memories_enduser
        WHERE tenant_id = %(tenant)s AND external_id = %(user_id)s
    )
"""


def person(*, tenant: Tenant, user_id: str) -> EndUser:
    """The end user whom the caller calls `user_id`. Errors: NotFound."""
    return _require(find_person(tenant=tenant, user_id=user_id))


def find_person(*, tenant: Tenant, user_id: str) -> EndUser | None:
    """The same, or None. Lists of an unknown person are empty."""
    found = next(iter(EndUser.objects.raw(_CALLED, {"tenant": tenant.pk, "user_id": user_id})), None)
    if found:
        found.tenant = tenant
    return found


def readable_person(*, tenant: Tenant, user_id: str) -> EndUser | None:
    """The same, but None also for a restricted person: no answer holds their data."""
    found = find_person(tenant=tenant, user_id=user_id)
    return None if found and found.restricted_at else found


def require_unrestricted(person: EndUser) -> EndUser:
    """The person, unless restricted. Errors: PersonRestricted."""
    if person.restricted_at:
        raise PersonRestricted
    return person


def require_readable(row: Readable) -> Readable:
    """The row, unless its person is restricted. Errors: PersonRestricted."""
    if row.end_user.restricted_at:
        raise PersonRestricted
    return row


def session(*, tenant: Tenant, session_id: uuid.UUID) -> Session:
    """Errors: NotFound."""
    return _require(sessions(tenant).select_related("working_memory").filter(pk=session_id).first())


def sessions(tenant: Tenant) -> QuerySet[Session]:
    """A tenant's sessions with all that answers show of them; likewise the functions below."""
    return Session.objects.filter(tenant=tenant).select_related("queue", "tenant", "end_user")


def fact(*, tenant: Tenant, fact_id: uuid.UUID) -> Fact:
    """Errors: NotFound."""
    return _require(facts(tenant).filter(pk=fact_id).first())


def facts(tenant: Tenant) -> FactQuerySet:
    # As lists: for a relation that keeps its name Django makes a query of each row, half of what a list takes.
    beside: tuple[Prefetch[Any], ...] = (
        Prefetch("evidence", queryset=FactEvidence.objects.select_related("session"), to_attr="cited"),
        Prefetch("relations", to_attr="stated_relations"),
        Prefetch("older", queryset=Fact.objects.only("superseded_by").order_by("pk"), to_attr="replaced"),
    )
    facts = Fact.objects.filter(tenant=tenant).annotate(embedding_model=_EMBEDDED_BY)
    return facts.select_related("end_user").prefetch_related(*beside)


def episode(*, tenant: Tenant, episode_id: uuid.UUID) -> Episode:
    """Errors: NotFound."""
    return _require(episodes(tenant).filter(pk=episode_id).first())


def episodes(tenant: Tenant) -> QuerySet[Episode]:
    episodes = Episode.objects.filter(tenant=tenant).annotate(embedding_model=_EPISODE_EMBEDDED_BY)
    return episodes.select_related("end_user", "session")


def dream(*, tenant: Tenant, dream_id: uuid.UUID) -> Dream:
    """Errors: NotFound."""
    return _require(dreams(tenant).prefetch_related("edits").filter(pk=dream_id).first())


def dreams(tenant: Tenant) -> QuerySet[Dream]:
    """Those that edit files: what a reflection finds only operators see, until they have approved it."""
    return Dream.objects.filter(tenant=tenant, kind=Dream.Kind.FILES).select_related("end_user")


def extraction(*, tenant: Tenant, run_id: uuid.UUID) -> ExtractionRun:
    """Errors: NotFound."""
    return _require(extractions(tenant).filter(pk=run_id).first())


def extractions(tenant: Tenant) -> QuerySet[ExtractionRun]:
    return ExtractionRun.objects.filter(tenant=tenant).select_related("session", "end_user")


def case(*, tenant: Tenant, case_id: uuid.UUID) -> PrivacyCase:
    """Errors: NotFound."""
    cases = PrivacyCase.objects.filter(tenant=tenant).defer("needles").prefetch_related("exports")
    return _require(cases.select_related("end_user__merged_into").filter(pk=case_id).first())


def found(rows: QuerySet[Row], *, tenant: Tenant, pk: uuid.UUID) -> Row:
    """One of the rows. Errors: NotFound."""
    return _require(rows.filter(tenant=tenant, pk=pk).first())


def group(*, tenant: Tenant, group_id: uuid.UUID) -> MemoryGroup:
    """Errors: NotFound, also for one in the trash."""
    return _require(MemoryGroup.objects.present().filter(tenant=tenant, pk=group_id).first())


def group_facts(group: MemoryGroup) -> GroupFactQuerySet:
    """The facts that its members' agents are served, with who stated them."""
    evidence = GroupEvidence.objects.filter(end_user__restricted_at=None, end_user__merged_into__restricted_at=None)
    with_evidence = Prefetch("evidence", queryset=evidence.select_related("end_user"))
    rows = GroupFact.objects.filter(tenant=group.tenant_id, group=group).served()
    return rows.select_related("about").prefetch_related(with_evidence)


def group_fact(*, group: MemoryGroup, fact_id: uuid.UUID) -> GroupFact:
    """Errors: NotFound, also for one in the trash; PersonRestricted, if nobody whose data may be used said it."""
    if not GroupFact.objects.filter(tenant=group.tenant_id, group=group, pk=fact_id).present().exists():
        raise NotFound
    found = group_facts(group).filter(pk=fact_id).first()
    if found is None:
        raise PersonRestricted
    return found


def agent(*, tenant: Tenant, agent_id: uuid.UUID) -> Agent:
    """Errors: NotFound."""
    return _require(Agent.objects.filter(tenant=tenant, pk=agent_id).first())


def _require(found: Row | None) -> Row:
    if found is None:
        raise NotFound
    return found
