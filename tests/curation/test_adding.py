"""Stating a fact: what it becomes, and that a text is stated once."""

from datetime import timedelta
from typing import Any

import pytest

from memories.audit import Actor
from memories.curation.facts.adding import FactDraft, add_fact
from memories.curation.facts.forgetting import forget_fact
from memories.curation.people.records import person_for_writing
from memories.curation.rollback.roll_back import roll_back
from memories.curation.rollback.selection import Selector
from memories.exceptions import DuplicateFact, EmbeddingUnavailable, PersonRestricted
from memories.llm import embeddings
from memories.models import ActorKind, AuditEvent, EndUser, Fact, FactRevision, ReviewItem
from tests import factories, vectors
from tests.database import PATIENCE, at_once, blocked, held
from tests.factories import KEY, NOW

pytestmark = pytest.mark.django_db


def add(person: EndUser, content: str = "Lives in Leiden", *, actor: Actor = KEY, **over: Any) -> Fact:
    draft = FactDraft(**{"content": content, "category": "knowledge", **over})
    return add_fact(end_user=person, draft=draft, actor=actor, now=NOW).row


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
        made = person_for_writing(tenant=tenant, user_id="u1", now=NOW)
        found = person_for_writing(tenant=tenant, user_id="u1", now=NOW + timedelta(days=1))
        assert made == found
        assert (found.created_at, found.last_seen_at, found.tenant) == (NOW, NOW, tenant)
        elsewhere = person_for_writing(tenant=factories.tenant(), user_id="u1", now=NOW)
        assert elsewhere != made

    def test_a_restricted_person_is_refused(self) -> None:
        person = factories.end_user(restricted_at=NOW)
        with pytest.raises(PersonRestricted):
            person_for_writing(tenant=person.tenant, user_id=person.external_id, now=NOW)
        person_for_writing(tenant=person.tenant, user_id="another", now=NOW)

    @pytest.mark.django_db(transaction=True)
    def test_many_at_once_make_one(self) -> None:
        tenant = factories.tenant()
        outcomes = at_once(8, lambda _: person_for_writing(tenant=tenant, user_id="u1", now=NOW))
        assert outcomes == [EndUser.objects.get()] * 8


class TestAgainstWhatIsKnown:
    """A key's statement and a fact with another value for its key."""

    def known(self, person: EndUser, **over: Any) -> Fact:
        given = {"category": "knowledge", "key": "home_city", "value": "Delft", "confidence": 0.9}
        return factories.fact(person, "Lives in Delft", **{**given, **over})

    def state(self, person: EndUser, **over: Any) -> Fact:
        return add(person, "Lives in Leiden", **{"key": "Home_City", "value": "Leiden", **over})

    @pytest.mark.parametrize(("confidence", "known"), [(0.9, 0.8), (0.9, 0.9), (0.95, 1.0)])
    def test_the_surer_or_newer_one_takes_its_place(self, person: EndUser, confidence: float, known: float) -> None:
        old = self.known(person, confidence=known)
        question = factories.review_item(factories.fact(person, "Lives in Gouda", status="archived"), known=old)
        fact = self.state(person, confidence=confidence)
        old.refresh_from_db()
        question.refresh_from_db()
        assert (fact.status, old.status, old.superseded_by, old.valid_to) == ("active", "superseded", fact, NOW)
        sets = FactRevision.objects.values_list("verb", "actor_kind", "change_set")
        assert {verb for verb, _, _ in sets} == {"add", "supersede"}
        assert len({change_set for _, _, change_set in sets}) == 1
        assert question.state == "settled"

    @pytest.mark.parametrize(
        ("over", "reason"),
        [
            ({"confidence": 0.94}, "less_sure"),
            ({"binding": True, "trust": "operator", "confidence": 0.1}, "operators_word"),
            ({"locked": True, "confidence": 0.1}, "operators_word"),
            ({"pinned": True, "agent_id": ""}, "operators_word"),
            ({"trust": "operator", "confidence": 0.1}, "outranked"),
        ],
    )
    def test_else_it_waits_and_changes_nothing(self, person: EndUser, over: dict[str, Any], reason: str) -> None:
        old = self.known(person, **over)
        fact = self.state(person)
        item = ReviewItem.objects.get()
        assert (item.reason, item.kind, item.fact, item.known) == (reason, "conflict", fact, old)
        assert (fact.status, Fact.objects.get(pk=old.pk).status) == ("pending", "active")

    def test_an_operators_word_to_all_agents_holds_for_each(self, person: EndUser) -> None:
        self.known(person, binding=True)
        assert self.state(person, agent_id="planner").status == "pending"

    @pytest.mark.parametrize(
        "over",
        [
            {"agent_id": "planner"},
            {"category": "identity"},
            {"key": "work_city"},
            {"value": ""},
            {"status": "superseded"},
            {"expires_at": NOW},
        ],
    )
    def test_what_is_about_something_else_stays(self, person: EndUser, over: dict[str, Any]) -> None:
        old = self.known(person, **over)
        assert self.state(person).status == "active"
        assert Fact.objects.get(pk=old.pk).status == old.status
        assert not ReviewItem.objects.exists()

    def test_the_same_value_in_an_operators_words_may_be_a_double(self, person: EndUser) -> None:
        old = self.known(person, value="LEIDEN")
        fact = self.state(person, actor=Actor.operator(factories.operator()))
        item = ReviewItem.objects.get()
        assert (item.reason, item.fact, item.known) == ("not_judged", fact, old)
        assert (fact.status, Fact.objects.get(pk=old.pk).status) == ("active", "active")

    def test_an_operator_waits_for_nobody(self, person: EndUser) -> None:
        old, word = self.known(person, confidence=1.0), self.known(person, agent_id="x", binding=True)
        fact = self.state(person, actor=Actor.operator(factories.operator()), confidence=0.1)
        assert (fact.status, Fact.objects.get(pk=old.pk).superseded_by) == ("active", fact)
        assert Fact.objects.get(pk=word.pk).status == "active"

    @pytest.mark.parametrize("again", [{"content": "lives in  LEIDEN"}, {"content": "At home in Delft", "key": "city"}])
    def test_what_an_operator_refused_waits(self, person: EndUser, again: dict[str, Any]) -> None:
        refused = factories.fact(person, "Lives in Leiden", key="city", value="Leiden")
        staff = Actor.operator(factories.operator())
        assert add(person, "Drinks tea", key="drink").status == "active"
        forget_fact(fact_id=refused.pk, tenant=None, actor=staff, now=NOW)
        fact = add(person, **again)
        item = ReviewItem.objects.get()
        assert (fact.status, item.reason, item.fact, item.known) == ("pending", "refused_before", fact, None)

    @pytest.mark.django_db(transaction=True)
    def test_two_values_at_once_leave_one(self, person: EndUser) -> None:
        with held(lambda: self.state(person)):
            second = blocked(lambda: add(person, "Lives in Gouda", key="home_city", value="Gouda"))
        assert second.result(PATIENCE).status == "active"
        assert list(Fact.objects.filter(status="active").values_list("value", flat=True)) == ["Gouda"]

    def test_all_is_rolled_back_with_its_key(self, person: EndUser) -> None:
        key, _ = factories.api_key(person.tenant)
        old = self.known(person)
        fact = self.state(person, actor=Actor(kind=ActorKind.KEY, id=str(key.pk)))
        staff = Actor.operator(factories.operator())
        roll_back(selector=Selector(person.tenant, key=key.pk), actor=staff, now=NOW)
        assert dict(Fact.objects.values_list("pk", "status")) == {old.pk: "active", fact.pk: "trashed"}


class TestNear:
    """A key's statement and a fact that may say the same: a person is asked, both are served."""

    TEA, TEA_TODAY = "Likes to drink green tea", "Likes to drink green tea today"

    @pytest.fixture
    def known(self, person: EndUser) -> Fact:
        fact = factories.fact(person, self.TEA)
        factories.fact(person, "Works in Leiden")
        vectors.embed_all(person, vectors.space(embeddings.HASHED, 16))
        return fact

    def test_a_person_is_asked(self, person: EndUser, known: Fact) -> None:
        fact = add(person, self.TEA_TODAY)
        item = ReviewItem.objects.get()
        assert (item.kind, item.reason, item.fact, item.known) == ("possible_duplicate", "not_judged", fact, known)
        assert set(Fact.objects.values_list("status", flat=True)) == {"active"}

    @pytest.mark.parametrize("over", [{"content": "Plays the cello"}, {"agent_id": "support"}])
    def test_not_about_what_lies_far_or_is_an_agents_own(
        self, person: EndUser, known: Fact, over: dict[str, Any]
    ) -> None:
        add(person, **{"content": self.TEA_TODAY, **over})
        assert not ReviewItem.objects.exists()

    def test_not_while_the_embedding_is_away(
        self, person: EndUser, known: Fact, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def away(*_: Any, **__: Any) -> None:
            raise EmbeddingUnavailable

        monkeypatch.setattr(embeddings, "embed_queries", away)
        monkeypatch.setattr(embeddings, "cached_queries", lambda *_, **__: None)
        assert add(person, self.TEA_TODAY).status == "active"
        assert not ReviewItem.objects.exists()
