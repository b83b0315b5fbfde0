"""What the database itself refuses; each refusal beside the nearest row that it takes."""

from typing import Any

import pytest
from django.db import IntegrityError, models, transaction

from memories.models import (
    ActorKind,
    APIKey,
    EndUser,
    ExtractionRun,
    Fact,
    FactEvidence,
    FactRefusal,
    FactRevision,
    ProfileSection,
    Session,
    Tenant,
    Turn,
)
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db


@pytest.fixture
def talk(person: EndUser) -> Session:
    return factories.session(person, [("user", "Hello"), ("assistant", "Hi")])


def refused(name: str, model: type[models.Model], **values: Any) -> None:
    with pytest.raises(IntegrityError, match=f'"{name}"'), transaction.atomic():
        model._default_manager.create(**values)


def turn_of(talk: Session, number: int, external_id: str | None) -> dict[str, Any]:
    return {
        "tenant": talk.tenant,
        "end_user": talk.end_user,
        "session": talk,
        "number": number,
        "role": "user",
        "token_count": 1,
        "external_id": external_id,
        "created_at": NOW,
    }


def test_a_slug_names_one_tenant() -> None:
    factories.tenant(slug="acme")
    refused("memories_tenant_slug_key", Tenant, slug="acme", created_at=NOW)
    Tenant.objects.create(slug="acme-2", created_at=NOW)


def test_a_prefix_names_one_key(person: EndUser) -> None:
    key, _ = factories.api_key(person.tenant)
    given = {"tenant": person.tenant, "digest": b"x", "scopes": [], "created_at": NOW}
    refused("memories_apikey_prefix_key", APIKey, prefix=key.prefix, **given)
    APIKey.objects.create(prefix="another", **given)


def test_a_person_is_once_in_a_tenant_and_again_in_another(person: EndUser) -> None:
    given = {"external_id": person.external_id, "created_at": NOW, "last_seen_at": NOW}
    refused("end_user_once_per_tenant", EndUser, tenant=person.tenant, **given)
    EndUser.objects.create(tenant=factories.tenant(), **given)


def test_a_session_is_once_per_agent_also_without_one(talk: Session) -> None:
    given = {
        "tenant": talk.tenant,
        "end_user": talk.end_user,
        "external_id": talk.external_id,
        "created_at": NOW,
        "last_turn_at": NOW,
    }
    refused("session_once_per_agent", Session, agent_id="", **given)
    Session.objects.create(agent_id="support", **given)


def test_a_number_is_once_in_a_session(talk: Session) -> None:
    refused("turn_number_once", Turn, **turn_of(talk, 2, None))
    Turn.objects.create(**turn_of(talk, 3, None))


def test_an_external_id_is_once_in_a_session_and_absent_in_many(talk: Session) -> None:
    Turn.objects.create(**turn_of(talk, 3, "m1"))
    refused("turn_external_id_once", Turn, **turn_of(talk, 4, "m1"))
    Turn.objects.create(**turn_of(talk, 4, None))
    other = factories.session(talk.end_user)
    Turn.objects.create(**turn_of(other, 2, "m1"))


@pytest.mark.parametrize("status", ["active", "pending"])
@pytest.mark.parametrize("known", ["active", "pending"])
def test_a_text_lives_once_per_person_and_agent(person: EndUser, known: str, status: str) -> None:
    factories.fact(person, "Lives in Leiden", status=known)
    with pytest.raises(IntegrityError, match="fact_text_once"), transaction.atomic():
        factories.fact(person, "lives in  LEIDEN", status=status)
    factories.fact(person, "Lives in Leiden", status=status, agent_id="support")
    factories.fact(factories.end_user(person.tenant), "Lives in Leiden", status=status)
    factories.fact(person, "Lives in Delft", status=status)


@pytest.mark.parametrize("status", ["superseded", "rejected", "archived", "trashed"])
def test_a_text_that_no_longer_lives_may_come_again(person: EndUser, status: str) -> None:
    for _ in range(2):
        factories.fact(person, "Lives in Leiden", status=status)
    factories.fact(person, "Lives in Leiden")
    assert Fact.objects.filter(end_user=person).count() == 3


@pytest.mark.parametrize("field", ["confidence", "importance"])
@pytest.mark.parametrize("value", [-0.01, 1.01, float("nan"), float("inf")])
def test_shares_are_from_0_to_1(person: EndUser, field: str, value: float) -> None:
    row = factories.fact(person)
    with pytest.raises(IntegrityError, match=f"fact_{field}_0_1"), transaction.atomic():
        Fact.objects.filter(pk=row.pk).update(**{field: value})
    for edge in (0.0, 1.0):
        Fact.objects.filter(pk=row.pk).update(**{field: edge})


def test_a_fact_says_something(person: EndUser) -> None:
    with pytest.raises(IntegrityError, match="fact_content_not_empty"), transaction.atomic():
        factories.fact(person, "")
    factories.fact(person, "喝茶")


def test_a_turn_is_cited_once_by_a_fact(person: EndUser, talk: Session) -> None:
    one, other = factories.fact(person, "One"), factories.fact(person, "Other")
    turn = talk.turns.get(number=1)
    factories.evidence(one, turn)
    cited = {"tenant": person.tenant, "fact": one, "turn": turn, "session": talk, "turn_number": 1, "created_at": NOW}
    refused("evidence_once", FactEvidence, **cited)
    factories.evidence(other, turn)


def test_a_version_has_one_revision(person: EndUser) -> None:
    given = {
        "tenant": person.tenant,
        "fact": factories.fact(person),
        "verb": "edit",
        "actor_kind": ActorKind.KEY,
        "created_at": NOW,
    }
    FactRevision.objects.create(version=1, **given)
    refused("revision_once", FactRevision, version=1, **given)
    FactRevision.objects.create(version=2, **given)


def test_a_refusal_is_kept_once_per_person_and_kind(person: EndUser) -> None:
    given = {"tenant": person.tenant, "digest": b"d" * 32, "created_at": NOW}
    FactRefusal.objects.create(end_user=person, kind="text", **given)
    refused("refusal_once", FactRefusal, end_user=person, kind="text", **given)
    FactRefusal.objects.create(end_user=person, kind="key", **given)
    FactRefusal.objects.create(end_user=factories.end_user(person.tenant), kind="text", **given)


def test_a_section_is_once_in_a_profile(person: EndUser) -> None:
    factories.profile_section(person, "work_context")
    with pytest.raises(IntegrityError, match="profile_section_once"), transaction.atomic():
        factories.profile_section(person, "work_context", "Again")
    factories.profile_section(person, "top_of_mind")
    assert ProfileSection.objects.filter(end_user=person).count() == 2


def test_a_run_covers_turns_in_order(talk: Session) -> None:
    with pytest.raises(IntegrityError, match="run_range_in_order"), transaction.atomic():
        factories.run(talk, first_number=2, last_number=1)
    factories.run(talk, first_number=2, last_number=2)
    assert ExtractionRun.objects.get().session == talk
