"""Stating a fact: what it becomes, and that a text is stated once."""

from datetime import timedelta
from typing import Any

import pytest

from memories import curation
from memories.audit import Actor
from memories.curation import FactDraft
from memories.exceptions import DuplicateFact, PersonRestricted
from memories.models import ActorKind, AuditEvent, EndUser, Fact, FactRevision
from tests import factories
from tests.database import PATIENCE, at_once, blocked, held
from tests.factories import NOW

pytestmark = pytest.mark.django_db
KEY = Actor(kind=ActorKind.KEY, id="4f1b", request_id="r-1")


@pytest.fixture
def person() -> EndUser:
    return factories.end_user()


def add(person: EndUser, content: str = "Lives in Leiden", *, actor: Actor = KEY, **over: Any) -> Fact:
    draft = FactDraft(**{"content": content, "category": "knowledge", **over})
    return curation.add_fact(end_user=person, draft=draft, actor=actor, now=NOW)


def test_a_key_states_an_active_fact_of_user_trust(person: EndUser) -> None:
    fact = Fact.objects.get(pk=add(person).pk)
    assert (fact.tenant, fact.end_user, fact.content) == (person.tenant, person, "Lives in Leiden")
    assert (fact.status, fact.trust, fact.source, fact.extractor) == ("active", "user", "explicit_user_input", "api")
    assert (fact.confidence, fact.stated_confidence, fact.importance, fact.binding) == (0.9, 0.9, 0.5, False)
    assert (fact.version, fact.mentions, fact.scope, fact.agent_id) == (1, 1, "private", "")
    for moment in ("created_at", "updated_at", "first_observed_at", "last_confirmed_at", "valid_from"):
        assert getattr(fact, moment) == NOW, moment
    assert fact.forget_at
    assert fact.forget_at > NOW + timedelta(days=30)
    assert fact.decay_score == 0.5


def test_an_operator_states_a_binding_fact(person: EndUser) -> None:
    fact = add(person, actor=Actor.operator(factories.operator()))
    assert (fact.binding, fact.trust, fact.source, fact.extractor) == (True, "operator", "corrected_memory", "operator")
    assert fact.forget_at is None


def test_everything_that_is_stated_is_kept(person: EndUser) -> None:
    stated: dict[str, Any] = {
        "category": "constraint",
        "confidence": 0.7,
        "importance": 0.3,
        "key": "diet",
        "value": "无麸质",
        "tags": ["food", "健康"],
        "scope": "share",
        "agent_id": "support",
        "allowed_users": ["u1"],
        "allowed_roles": ["admin"],
        "expires_at": NOW + timedelta(days=3),
        "structured": {"since": [2019, None, {"深": True}]},
    }
    fact = Fact.objects.get(pk=add(person, "不吃面包", **stated).pk)
    for name, value in stated.items():
        assert getattr(fact, name) == value, name


def test_it_leaves_a_revision_and_an_event_without_content(person: EndUser) -> None:
    fact = add(person, "Lives in Leiden", key="home_city", value="Leiden")
    revision = FactRevision.objects.get()
    assert (revision.fact, revision.version, revision.verb, revision.before) == (fact, 1, "add", {})
    assert (revision.actor_kind, revision.actor_id, revision.created_at) == ("key", "4f1b", NOW)
    assert (revision.after["content"], revision.after["status"]) == ("Lives in Leiden", "active")
    event = AuditEvent.objects.get()
    assert (event.verb, event.object_type, event.object_id) == ("add", "Fact", fact.pk)
    assert (event.actor_kind, event.actor_id, event.request_id) == ("key", "4f1b", "r-1")
    assert event.tenant_uuid == person.tenant_id
    assert not any("eiden" in str(value) for value in vars(event).values())


@pytest.mark.parametrize("status", ["active", "pending"])
def test_the_same_text_is_refused_with_the_id_of_the_first(person: EndUser, status: str) -> None:
    known = factories.fact(person, "Lives in Leiden", status=status)
    before = FactRevision.objects.count(), AuditEvent.objects.count()
    with pytest.raises(DuplicateFact) as refused:
        add(person, " lives in  LEIDEN")
    assert refused.value.fact_id == known.pk
    assert Fact.objects.count() == 1
    assert (FactRevision.objects.count(), AuditEvent.objects.count()) == before


@pytest.mark.parametrize("status", ["trashed", "superseded", "rejected", "archived"])
def test_a_text_that_no_longer_holds_can_be_stated_again(person: EndUser, status: str) -> None:
    factories.fact(person, "Lives in Leiden", status=status)
    assert add(person).status == "active"


def test_other_agents_and_people_can_have_the_same_text(person: EndUser) -> None:
    add(person)
    add(person, agent_id="support")
    add(factories.end_user(person.tenant))
    assert Fact.objects.count() == 3
    with pytest.raises(DuplicateFact):
        add(person, agent_id="support")


@pytest.mark.django_db(transaction=True)
def test_many_at_once_make_one_fact_and_all_others_learn_its_id() -> None:
    person = factories.end_user()
    outcomes = at_once(8, lambda _: add(person, "住在莱顿"))
    fact = Fact.objects.get()
    assert [outcome for outcome in outcomes if isinstance(outcome, Fact)] == [fact]
    losers = [outcome for outcome in outcomes if isinstance(outcome, DuplicateFact)]
    assert [loser.fact_id for loser in losers] == [fact.pk] * 7
    assert FactRevision.objects.count() == AuditEvent.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_whoever_waits_for_the_first_writer_is_told_its_id() -> None:
    person = factories.end_user()

    def store() -> Fact:
        return factories.fact(person, "Lives in Leiden")

    # Looked for before the first is visible, inserted after it is: only the constraint can tell.
    with held(store) as first:
        late = blocked(lambda: add(person))
    with pytest.raises(DuplicateFact) as refused:
        late.result(PATIENCE)
    assert refused.value.fact_id == first.pk
    assert Fact.objects.get() == first


class TestPersonForWriting:
    def test_made_on_first_sight_and_found_again(self) -> None:
        tenant = factories.tenant()
        made = curation.person_for_writing(tenant=tenant, user_id="u1", now=NOW)
        found = curation.person_for_writing(tenant=tenant, user_id="u1", now=NOW + timedelta(days=1))
        assert made == found
        assert (found.created_at, found.last_seen_at, found.tenant) == (NOW, NOW, tenant)
        elsewhere = curation.person_for_writing(tenant=factories.tenant(), user_id="u1", now=NOW)
        assert elsewhere != made

    def test_a_restricted_person_is_refused(self) -> None:
        person = factories.end_user(restricted_at=NOW)
        with pytest.raises(PersonRestricted):
            curation.person_for_writing(tenant=person.tenant, user_id=person.external_id, now=NOW)
        curation.person_for_writing(tenant=person.tenant, user_id="another", now=NOW)

    @pytest.mark.django_db(transaction=True)
    def test_many_at_once_make_one(self) -> None:
        tenant = factories.tenant()
        outcomes = at_once(8, lambda _: curation.person_for_writing(tenant=tenant, user_id="u1", now=NOW))
        assert outcomes == [EndUser.objects.get()] * 8
