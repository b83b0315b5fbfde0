"""Whoever states a fact or writes a profile stores no secret."""

from typing import Any

import pytest

from memories.audit import Actor
from memories.curation.facts.adding import FactDraft, add_fact
from memories.curation.facts.editing import correct_fact, edit_fact
from memories.curation.profile.sections import write_profile_section
from memories.models import EndUser, Fact
from tests import factories
from tests.curation.marks import places_of
from tests.factories import NOW

pytestmark = pytest.mark.django_db
SECRET = "Tr0ub4dor-9x"
SAID = [f"My password is {SECRET}", f"我的密码是{SECRET}"]


DRAFTS: list[dict[str, Any]] = [
    *(
        {"content": said, "key": "note", "value": said, "tags": [said], "structured": {"deep": [{"note": said}]}}
        for said in SAID
    ),
    {"key": "password", "value": SECRET, "structured": {"password": SECRET}},
]


@pytest.mark.parametrize("given", DRAFTS)
def test_a_stated_secret_is_nowhere_nor_an_edited_one(person: EndUser, given: dict[str, Any]) -> None:
    draft = FactDraft(**{"content": "Likes tea", "category": "knowledge", **given})
    by: dict[str, Any] = {"actor": factories.COMMAND, "now": NOW}
    fact = add_fact(end_user=person, draft=draft, **by).row
    assert places_of(SECRET) == []
    fields = {place for place in places_of("redacted:password") if place.startswith("memories_fact.")}
    assert fields == {f"memories_fact.{name}" for name in given if name != "key"}
    other = {name: value for name, value in vars(draft).items() if name not in given}
    assert all(getattr(fact, name) == value or list(value) == [] for name, value in other.items())
    edited = factories.fact(factories.end_user(person.tenant))
    edit_fact(fact_id=edited.pk, tenant=person.tenant, changes=given, **by)
    assert places_of(SECRET) == []
    assert [getattr(Fact.objects.get(pk=edited.pk), name) == getattr(fact, name) for name in given] == [True] * len(
        given
    )


@pytest.mark.parametrize("said", SAID)
def test_a_correction_and_its_reason_store_none(person: EndUser, said: str) -> None:
    fact, operator = factories.fact(person), Actor.operator(factories.operator())
    correct_fact(fact_id=fact.pk, tenant=None, content=said, reason=said, actor=operator, now=NOW)
    assert places_of(SECRET) == []
    assert {"memories_fact.content", "memories_factrevision.reason"} <= set(places_of("redacted:password"))


@pytest.mark.parametrize("said", SAID)
def test_a_profile_stores_none(person: EndUser, said: str) -> None:
    given: dict[str, Any] = {"section": "work_context", "actor": factories.COMMAND, "now": NOW}
    write_profile_section(end_user=person, summary=f"Runs a bakery. {said}", **given)
    assert places_of(SECRET) == []
    assert places_of("Runs a bakery")


def test_what_is_no_secret_stays(person: EndUser) -> None:
    stated: dict[str, Any] = {
        "content": "Is allergic to penicillin 对青霉素过敏",
        "key": "allergy",
        "value": "penicillin",
        "tags": ["健康"],
        "structured": {"since": [2019, None, {"深": True}]},
    }
    draft = FactDraft(category="constraint", **stated)
    added = add_fact(end_user=person, draft=draft, actor=factories.COMMAND, now=NOW).row
    fact = Fact.objects.get(pk=added.pk)
    assert {name: getattr(fact, name) for name in stated} == stated
