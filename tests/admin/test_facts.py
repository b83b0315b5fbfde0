"""The list of facts."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

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


def test_it_is_searched_and_filtered(admin: Client, facts: list[Fact]) -> None:
    first, second, third = (fact.content for fact in facts)
    for query, contents in (
        ({"q": "PENICILLIN"}, {first}),
        ({"q": "allergy"}, {first}),
        ({"q": "简短"}, {second}),
        ({"status__exact": "pending"}, {second}),
        ({"trust__exact": "assistant"}, {second}),
        ({"category__exact": "identity"}, {third}),
        ({"tenant__id__exact": str(facts[0].tenant_id)}, {first, second}),
        ({"end_user__id__exact": str(facts[0].end_user_id)}, {first, second}),
    ):
        assert found(admin, **query) == contents, query
    assert "column-tenant" in text_of(admin.get(list_of(Fact)))


def test_confidence_is_a_figure_and_a_bar(admin: Client) -> None:
    factories.fact(factories.end_user(), confidence=0.954)
    page = text_of(admin.get(list_of(Fact)))
    assert "95 %" in page
    assert "column-tenant" not in page
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


@pytest.mark.parametrize(
    ("tab", "field", "heading"),
    [("expiring", "expires_at", "Expires"), ("fading", "forget_at", "Fades"), ("next_pass", "forget_at", "Fades")],
)
def test_what_goes_first_is_first(admin: Client, tab: str, field: str, heading: str) -> None:
    """Of what goes soon, with the moment: the oldest facts need not be those."""
    now = timezone.now()
    soon, sooner = (factories.fact(factories.end_user(), now=now - timedelta(days=age)) for age in (1, 2))
    first = now - timedelta(days=2) if tab == "next_pass" else now + timedelta(days=2)
    Fact.objects.filter(pk=soon.pk).update(**{field: first + timedelta(days=1)})
    Fact.objects.filter(pk=sooner.pk).update(**{field: first})
    listed: Any = admin.get(f"{list_of(Fact)}?tab={tab}")
    assert [fact.pk for fact in listed.context["cl"].result_list] == [sooner.pk, soon.pk]
    assert heading in text_of(listed)
    # Somebody can sort it otherwise, and all facts are sorted as ever.
    turned: Any = admin.get(f"{list_of(Fact)}?tab={tab}&o=-7")
    assert [fact.pk for fact in turned.context["cl"].result_list] == [soon.pk, sooner.pk]
    every: Any = admin.get(list_of(Fact))
    assert [fact.pk for fact in every.context["cl"].result_list] == [soon.pk, sooner.pk]


def test_its_statements_are_planned_for_their_values(admin: Client) -> None:
    def prepared() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%%fact%%ORDER BY%%'")
            return int(cursor.fetchone()[0])

    before = prepared()
    for _ in range(8):
        admin.get(f"{list_of(Fact)}?tab=expiring")
    assert prepared() == before
    for _ in range(8):
        list(Fact.objects.filter(status="active").order_by("expires_at")[:25])
    assert prepared() == before + 1
