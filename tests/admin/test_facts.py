"""The list of facts."""

from typing import Any

import pytest
from django.test import Client

from memories.models import Fact
from tests import factories
from tests.admin.pages import list_of, text_of


def found(client: Client, **query: Any) -> set[str]:
    return {row.content for row in client.get(list_of(Fact), query).context["cl"].result_list}


@pytest.fixture
def facts(db: None) -> list[Fact]:
    person, other = factories.end_user(), factories.end_user()
    return [
        factories.fact(person, "Allergic to penicillin", category="constraint", key="allergy"),
        factories.fact(person, "喜欢简短的回答", category="preference", trust="assistant", status="pending"),
        factories.fact(other, "Works at a logistics company", category="identity"),
    ]


@pytest.mark.parametrize(
    ("query", "contents"),
    [
        ({"q": "PENICILLIN"}, {"Allergic to penicillin"}),
        ({"q": "allergy"}, {"Allergic to penicillin"}),
        ({"q": "简短"}, {"喜欢简短的回答"}),
        ({"status__exact": "pending"}, {"喜欢简短的回答"}),
        ({"trust__exact": "assistant"}, {"喜欢简短的回答"}),
        ({"category__exact": "identity"}, {"Works at a logistics company"}),
    ],
)
def test_it_is_searched_and_filtered(
    admin: Client, facts: list[Fact], query: dict[str, str], contents: set[str]
) -> None:
    assert found(admin, **query) == contents


def test_it_is_filtered_by_tenant_and_person(admin: Client, facts: list[Fact]) -> None:
    mine = {"Allergic to penicillin", "喜欢简短的回答"}
    assert found(admin, tenant__id__exact=str(facts[0].tenant_id)) == mine
    assert found(admin, end_user__id__exact=str(facts[0].end_user_id)) == mine


def test_confidence_is_a_figure_and_a_bar(admin: Client) -> None:
    factories.fact(factories.end_user(), confidence=0.954)
    page = text_of(admin.get(list_of(Fact)))
    assert "95 %" in page
    assert '<progress max="1" value="0.954">' in page


def test_a_long_fact_is_clipped(admin: Client) -> None:
    factories.fact(factories.end_user(), "word " * 400)
    page = text_of(admin.get(list_of(Fact)))
    assert page.count("word ") < 100
    assert "…" in page


def test_nothing_is_deleted_from_the_list(admin: Client, facts: list[Fact]) -> None:
    chosen = {"action": "delete_selected", "_selected_action": [str(facts[0].pk)], "post": "yes"}
    admin.post(list_of(Fact), chosen)
    assert Fact.objects.count() == 3
    page = text_of(admin.get(list_of(Fact)))
    assert "delete_selected" not in page
    assert "forget_many" in page


def test_an_empty_list_says_what_to_do(admin: Client) -> None:
    assert "No facts yet" in text_of(admin.get(list_of(Fact)))


def test_it_shows_25_a_page(admin: Client) -> None:
    person = factories.end_user()
    for number in range(26):
        factories.fact(person, f"Fact {number}")
    pages = [admin.get(list_of(Fact), {"p": page}).context["cl"].result_list for page in (1, 2)]
    assert [len(page) for page in pages] == [25, 1]
