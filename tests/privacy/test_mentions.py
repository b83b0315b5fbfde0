"""Who else names a person."""

import pytest

from memories.models import EndUser
from memories.privacy.searching.mentions import mentions_of
from tests import factories

pytestmark = pytest.mark.django_db
NAME = "zaphod@example.org"


@pytest.fixture
def person(db: None) -> EndUser:
    someone = factories.end_user(external_id=NAME, metadata={"mail": NAME})
    factories.session(someone, [("user", f"I am {NAME}")])
    factories.fact(someone, f"Is {NAME}")
    return someone


def test_nobody_else_names_them(person: EndUser) -> None:
    friend = factories.end_user(person.tenant, external_id="friend")
    factories.session(friend, [("user", "notzaphod@example.org or zaphod@example.orgs or Zaphod@Example.org")])
    factories.session(factories.end_user(), [("user", f"Another tenant's {NAME}")])
    assert mentions_of(person) == {}


def test_each_row_of_others_that_names_them_counts_once(person: EndUser) -> None:
    factories.end_user(person.tenant, external_id="z.b", merged_into=person)
    friend = factories.end_user(person.tenant, metadata={"partner": NAME})
    session = factories.session(friend, [("user", f"Tell {NAME}! {NAME}?"), ("assistant", "问zaphod@example.org吧")])
    factories.fact(friend, "Married", allowed_users=["x", NAME], value=f"to <{NAME}>")
    factories.episode(session, f"Talked of {NAME}")
    factories.profile_section(friend, summary=f"Lives with {NAME}.")
    assert mentions_of(person) == {
        "memories.Turn.content": 2,
        "memories.Fact.value": 1,
        "memories.Fact.allowed_users": 1,
        "memories.Episode.summary": 1,
        "memories.ProfileSection.summary": 1,
        "memories.EndUser.metadata": 1,
    }


@pytest.mark.parametrize("name", ["a.*b(c", "100%_sure", 'say "hi" \\o/', "张伟先生"])
def test_any_id_is_looked_for_as_it_is(person: EndUser, name: str) -> None:
    EndUser.objects.filter(pk=person.pk).update(external_id=name)
    person.refresh_from_db()
    friend = factories.end_user(person.tenant)
    factories.session(friend, [("user", f"with {name}, yes"), ("user", "axxb(c 100xxsure say hi")])
    assert mentions_of(person) == {"memories.Turn.content": 1}


def test_names_of_few_letters_are_not_counted(person: EndUser) -> None:
    EndUser.objects.filter(pk=person.pk).update(external_id="bob")
    person.refresh_from_db()
    factories.session(factories.end_user(person.tenant), [("user", "bob bob")])
    assert mentions_of(person) == {}
