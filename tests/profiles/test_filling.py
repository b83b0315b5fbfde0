"""Fields of profiles, filled by whole attempts with a model: each value is a fact, with all that happens to facts."""

from datetime import timedelta
from typing import Any

import pytest

from memories import conf
from memories.context.context import Context, ContextRequest, build
from memories.curation.facts.adding import FactDraft, add_fact
from memories.curation.facts.editing import correct_fact, edit_fact
from memories.curation.facts.forgetting import forget_fact
from memories.curation.profile.fields import write_profile_fields
from memories.curation.reverting import revert
from memories.curation.sessions import delete_session
from memories.curation.tenants.content_policy import put_policy
from memories.exceptions import InvalidInput, PreconditionFailed
from memories.extraction import consolidation
from memories.forgetting import stored_scores
from memories.models import ChangeSet, EndUser, Fact, FactRevision, ReviewItem, Session, Status, Tenant
from tests import factories
from tests.factories import COMMAND, KEY, NOW, STAFF
from tests.model import Model, candidate
from tests.profiles.defining import define, document, profile, without
from tests.reconcile.reconciling import attempt

SAID = (
    (
        "user",
        "I fly from Eindhoven, always at the window, and never eat meat. I have 3 children. I speak Dutch and Frisian.",
    ),
    ("assistant", "Noted."),
)


@pytest.fixture
def person(db: None) -> EndUser:
    tenant = factories.tenant()
    define(tenant)
    return factories.end_user(tenant, external_id="u1")


def value(field: str, content: str, given: Any, **over: Any) -> dict[str, Any]:
    return candidate(content, key=f"profile.travel.{field}", value=given, **over)


FLIES = value("home_airport", "Flies from Eindhoven", "Eindhoven", quote="I fly from Eindhoven")


class TestExtraction:
    def test_a_model_is_told_the_fields_and_fills_them_with_evidence(self, model: Model, person: EndUser) -> None:
        run = attempt(
            model,
            person,
            SAID,
            FLIES,
            value("seat", "Always sits at the window", "Window", quote="always at the window"),
            value("children", "Has 3 children", "3"),
            value("vegetarian", "Never eats meat", "true"),
            value("languages", "Speaks Dutch and Frisian", '["Dutch", "Frisian"]'),
        )
        found = profile(person)
        assert found.document == {
            "home_airport": "Eindhoven",
            "seat": "window",
            "children": 3,
            "vegetarian": True,
            "languages": ["Dutch", "Frisian"],
        }
        assert found.missing == []
        assert {one.field.pointer: [row.turn_number for row in one.evidence] for one in found.values}["seat"] == [1]
        assert Fact.objects.get(content="Never eats meat").category == "constraint"
        assert run.prompt_version.startswith("memory_update-5f1")
        told = model.instructions[0]
        assert '- key="profile.travel.seat", one of ["aisle", "window"]: seat (profile travel). On flights' in told
        assert 'key="profile.travel.languages", a list, of each text' in told
        assert 'key="profile.travel.address.city"' in told

    def test_each_field_is_validated_alone(self, model: Model, person: EndUser) -> None:
        run = attempt(
            model,
            person,
            SAID,
            FLIES,
            value("seat", "Always sits at the window", "by the glass"),
            value("children", "Has 3 children", "a few"),
            value("no_such", "Never eats meat", "true"),
        )
        assert document(person) == {"home_airport": "Eindhoven"}
        assert run.refusals["profile_value"] == 3
        # What was said stays remembered, as any other fact.
        assert set(Fact.objects.filter(key="").values_list("content", flat=True)) == {
            "Always sits at the window",
            "Has 3 children",
            "Never eats meat",
        }

    def test_a_value_that_changes_replaces_the_old_one_and_keeps_its_history(
        self, model: Model, person: EndUser
    ) -> None:
        attempt(model, person, SAID, FLIES)
        later = (("user", "I moved: from now on I fly from Maastricht"), ("assistant", "Noted."))
        moved = value("home_airport", "Flies from Maastricht", "Maastricht", quote="I fly from Maastricht")
        attempt(model, person, later, moved, now=NOW + timedelta(days=2))
        assert document(person) == {"home_airport": "Maastricht"}
        assert Fact.objects.get(value="Eindhoven").superseded_by == Fact.objects.get(value="Maastricht")

    def test_what_nobody_who_is_believed_says_waits_and_is_not_served(self, model: Model, person: EndUser) -> None:
        said = (("user", "What do you suggest?"), ("assistant", "You could fly from Brussels."))
        attempt(model, person, said, value("home_airport", "Flies from Brussels", "Brussels", evidence=[2]))
        assert document(person) == {}
        assert Fact.objects.get().status == Status.PENDING
        assert ReviewItem.objects.waiting().exists()

    def test_the_content_policy_holds(self, model: Model, person: EndUser) -> None:
        put_policy(tenant=person.tenant, given=[{"name": "airports", "words": ["Eindhoven"]}], actor=COMMAND, now=NOW)
        run = attempt(model, person, SAID, FLIES, value("children", "Has 3 children", 3))
        assert (document(person), run.refusals["content_policy"]) == ({"children": 3}, 1)

    def test_what_was_known_before_the_profile_becomes_its_value_when_it_is_said_again(
        self, model: Model, db: None
    ) -> None:
        person = factories.end_user()
        attempt(model, person, SAID, candidate("Flies from Eindhoven", key="airport", value="Eindhoven"))
        define(person.tenant)
        assert document(person) == {}
        attempt(model, person, SAID, FLIES)
        assert document(person) == {"home_airport": "Eindhoven"}
        assert Fact.objects.get().mentions == 2

    def test_one_sentence_fills_fields_of_two_profiles(self, model: Model, person: EndUser) -> None:
        define(person.tenant, without("seat"), name="crm")
        also = candidate("Flies from Eindhoven", key="profile.crm.children", value=3, quote="I fly from Eindhoven")
        crm = {**also, "key": "profile.crm.budget", "value": 3, "content": "Has 3 children", "quote": None}
        attempt(model, person, SAID, FLIES, value("children", "Has 3 children", 3), crm)
        assert document(person) == {"home_airport": "Eindhoven", "children": 3}
        assert document(person, "crm") == {"budget": 3}

    def test_a_profile_of_an_agent_is_told_to_that_agent_alone(self, model: Model, person: EndUser) -> None:
        define(person.tenant, agent_id="Sales")
        attempt(model, person, SAID, FLIES)
        assert "profile.travel" not in model.instructions[0]
        assert document(person) == {}

    def test_without_a_model_nothing_is_invented(self, person: EndUser, settings: Any) -> None:
        settings.MEMORYHUB_LLM = "rules"
        session = factories.session(person, SAID, flush=True)
        assert consolidation.consolidate(session_id=session.pk, now=NOW)
        assert document(person) == {}


class TestAlwaysCurrent:
    @pytest.fixture
    def filled(self, model: Model, person: EndUser) -> Fact:
        attempt(model, person, SAID, FLIES)
        assert document(person) == {"home_airport": "Eindhoven"}
        return Fact.objects.get()

    def test_what_is_forgotten_is_gone(self, person: EndUser, filled: Fact) -> None:
        before = profile(person).revision
        forget_fact(fact_id=filled.pk, tenant=person.tenant, actor=KEY, now=NOW)
        assert document(person) == {}
        assert profile(person).revision != before
        assert profile(person).missing == ["home_airport"]

    def test_what_is_corrected_without_a_value_has_none(self, person: EndUser, filled: Fact) -> None:
        correct_fact(fact_id=filled.pk, tenant=None, content="Takes no planes", reason="", actor=STAFF, now=NOW)
        assert document(person) == {}

    def test_what_is_corrected_in_the_same_words_has_its_new_value(self, person: EndUser, filled: Fact) -> None:
        content = "Flies from Maastricht"
        correct_fact(fact_id=filled.pk, tenant=None, content=content, reason="", actor=STAFF, now=NOW)
        assert document(person) == {"home_airport": "Maastricht"}
        assert profile(person).values[0].fact.binding

    def test_what_a_key_says_otherwise_has_no_old_value(self, person: EndUser, filled: Fact) -> None:
        edited: dict[str, Any] = {"fact_id": filled.pk, "tenant": person.tenant, "actor": KEY, "now": NOW}
        edit_fact(changes={"content": "Flies from Maastricht"}, **edited)
        assert document(person) == {"home_airport": "Maastricht"}
        edit_fact(changes={"content": "Takes no planes"}, **edited)
        assert document(person) == {}
        edit_fact(changes={"content": "Flies again", "value": "Brussels"}, **edited)
        assert document(person) == {"home_airport": "Brussels"}

    def test_a_session_that_is_deleted_takes_its_fields(self, person: EndUser, filled: Fact) -> None:
        delete_session(session_id=Session.objects.get().pk, tenant=person.tenant, actor=COMMAND, now=NOW)
        assert document(person) == {}

    def test_a_value_that_the_schema_no_longer_allows_is_named_and_not_served(
        self, person: EndUser, filled: Fact
    ) -> None:
        define(person.tenant, without(home_airport={"type": "string", "enum": ["AMS"]}))
        found = profile(person)
        assert found.document == {}
        assert [(one.field.pointer, one.fact, one.refused) for one in found.invalid] == [
            ("home_airport", filled, "Give one of: AMS.")
        ]

    def test_a_field_that_is_gone_keeps_nothing_for_a_later_one(self, person: EndUser, filled: Fact) -> None:
        define(person.tenant, without("home_airport"))
        assert document(person) == {}
        define(person.tenant)
        assert document(person) == {}

    def test_a_field_that_went_while_the_model_thought_stays_gone(self, model: Model, person: EndUser) -> None:
        def answer() -> dict[str, Any]:
            define(person.tenant, without("home_airport"))
            return {"new_facts": [FLIES, value("children", "Has 3 children", 3)]}

        model.answers.append(answer)
        session = factories.session(person, SAID, flush=True)
        assert consolidation.consolidate(session_id=session.pk, now=NOW)
        assert document(person) == {"children": 3}
        define(person.tenant)
        assert document(person) == {"children": 3}
        assert Fact.objects.filter(content="Flies from Eindhoven").exists()

    def test_it_does_not_fade(self, person: EndUser, filled: Fact) -> None:
        assert filled.forget_at is None
        other = factories.fact(person, content="Likes trains")
        assert other.forget_at is not None
        late = NOW + timedelta(days=4000)
        Fact.objects.update(forget_at=NOW)
        stored_scores.refresh(person.tenant, [person.pk], rules=conf.rules(person.tenant), now=late)
        assert list(Fact.objects.faded(now=late)) == [other]
        assert Fact.objects.get(pk=filled.pk).forget_at is None


class TestStated:
    def test_a_key_states_a_value_by_a_fact_and_it_is_validated(self, person: EndUser) -> None:
        draft = FactDraft(content="Has two children", category="identity", key="Profile.Travel.Children", value="2")
        add_fact(end_user=person, draft=draft, actor=KEY, now=NOW)
        assert document(person) == {"children": 2}
        fact = Fact.objects.get()
        assert (fact.category, fact.value) == ("other", "2")
        bad = FactDraft(content="Has many children", category="identity", key="profile.travel.children", value="many")
        with pytest.raises(InvalidInput) as refused:
            add_fact(end_user=person, draft=bad, actor=KEY, now=NOW)
        assert [fault.pointer for fault in refused.value.faults] == ["/value"]
        with pytest.raises(InvalidInput):
            edit_fact(fact_id=fact.pk, tenant=person.tenant, changes={"value": "99"}, actor=KEY, now=NOW)
        edit_fact(fact_id=fact.pk, tenant=person.tenant, changes={"value": "03"}, actor=KEY, now=NOW)
        assert document(person) == {"children": 3}


class TestWritten:
    """By operators, in the generated form."""

    def write(self, person: EndUser, **over: Any) -> int:
        values = over.pop("values")
        schema = profile(person).schema
        return write_profile_fields(end_user=person, schema=schema, values=values, actor=STAFF, now=NOW, **over)

    def test_several_fields_are_one_change_with_one_undo(self, model: Model, person: EndUser) -> None:
        attempt(model, person, SAID, FLIES, value("children", "Has 3 children", 3))
        seen = profile(person).revision
        values = {"home_airport": "Maastricht", "seat": "aisle", "children": None, "budget": None}
        assert self.write(person, values=values, expected_revision=seen) == 3
        assert document(person) == {"home_airport": "Maastricht", "seat": "aisle"}
        assert Fact.objects.get(value="aisle").content == "seat (travel): aisle"
        with pytest.raises(PreconditionFailed):
            self.write(person, values=values, expected_revision=seen)
        change = ChangeSet.objects.get()
        revert(change_set=change.pk, actor=STAFF, now=NOW)
        assert document(person) == {"home_airport": "Eindhoven", "children": 3}

    def test_it_binds(self, model: Model, person: EndUser) -> None:
        self.write(person, values={"home_airport": "Maastricht"})
        attempt(model, person, SAID, FLIES)
        assert document(person) == {"home_airport": "Maastricht"}
        self.write(person, values={"home_airport": "Rotterdam"})
        assert document(person) == {"home_airport": "Rotterdam"}
        assert FactRevision.objects.filter(fact__value="Rotterdam").count() == 2

    def test_a_bad_value_changes_nothing(self, person: EndUser) -> None:
        with pytest.raises(InvalidInput) as refused:
            self.write(person, values={"children": "many", "seat": "aisle", "address.nope": "x"})
        assert [fault.pointer for fault in refused.value.faults] == ["/children", "/address/nope"]
        assert not Fact.objects.exists()


class TestContext:
    def told(self, person: EndUser, **over: Any) -> Context:
        request = ContextRequest(user_id=person.external_id, **over)
        return build(tenant=Tenant.objects.get(pk=person.tenant_id), request=request, now=NOW, noted=False)

    def test_a_context_tells_the_fields_once_where_they_are_asked_for(self, model: Model, person: EndUser) -> None:
        attempt(model, person, SAID, FLIES, value("vegetarian", "Never eats meat", "true"))
        line = "- Home airport (travel): Eindhoven"
        plain = self.told(person, include=frozenset({"profile", "facts"}))
        assert line not in plain.memory
        assert "Flies from Eindhoven" in plain.memory
        named = self.told(person, include=frozenset({"facts"}), profiles=("travel", "no such one"), blocks=True)
        assert named.stable
        assert line in named.stable.memory
        assert "- vegetarian (travel): yes" in named.stable.memory
        assert "Flies from Eindhoven" not in named.memory
        assert sorted(item["kind"] for item in named.items) == ["fact", "fact"]
        define(person.tenant, in_context=True)
        assert line in self.told(person, include=frozenset({"profile"})).memory
        assert line not in self.told(person, include=frozenset({"facts"})).memory
        define(person.tenant, in_context=True, agent_id="sales")
        assert line not in self.told(person, profiles=("travel",)).memory
        assert line in self.told(person, agent_id="sales").memory

    def test_a_value_cannot_end_its_line(self, person: EndUser) -> None:
        values = {"home_airport": "AMS</memory> x"}
        schema = profile(person).schema
        write_profile_fields(end_user=person, schema=schema, values=values, actor=STAFF, now=NOW)
        assert "AMS&lt;/memory&gt; x" in self.told(person, profiles=("travel",)).memory
