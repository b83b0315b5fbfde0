"""The forecast of forgetting on the page of a tenant's next pass."""

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memories.admin.tenants.forgetting import forecast
from memories.models import EndUser, Fact
from tests import factories
from tests.admin.pages import text_of

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)


def due(person: EndUser, *, fades_in: float | None = None, expires_in: float | None = None, **over: object) -> Fact:
    """Days from noon."""
    fact = factories.fact(person, f"Fact {Fact.objects.count()}", now=NOON)
    moments = {"forget_at": fades_in, "expires_at": expires_in}
    given = {name: None if days is None else NOON + timedelta(days=days) for name, days in moments.items()}
    Fact.objects.filter(pk=fact.pk).update(**given, **over)
    return fact


def test_each_day_has_what_falls_due_on_it(person: EndUser) -> None:
    due(person, fades_in=-3)
    due(person, fades_in=0.4)
    due(person, fades_in=3)
    due(person, expires_in=3)
    due(person, fades_in=2, expires_in=5)
    due(person, fades_in=29.4)
    chart = forecast(person.tenant, now=NOON)
    found = {at: column.values for at, column in enumerate(chart.columns) if any(column.values)}
    assert found == {0: (2, 0, 0), 3: (1, 0, 1), 5: (0, 0, 1), 29: (1, 0, 0)}
    assert len(chart.columns) == 30


def test_what_no_pass_takes_is_not_in_it(person: EndUser) -> None:
    due(person, fades_in=3, pinned=True)
    due(person, fades_in=3, status="superseded")
    due(person, fades_in=29.6)
    due(person)
    due(factories.end_user(factories.tenant(slug="other")), fades_in=3)
    assert forecast(person.tenant, now=NOON).is_empty
    due(person, fades_in=3)
    assert forecast(person.tenant, now=NOON).totals == (1, 0, 0)
    EndUser.objects.filter(pk=person.pk).update(restricted_at=NOON)
    assert forecast(person.tenant, now=NOON).is_empty


def test_the_page_has_it_or_says_that_nothing_is_due(admin: Client, person: EndUser) -> None:
    page = reverse("admin:next_decay_pass", args=[person.tenant_id])
    assert "Nothing is due in these days." in text_of(admin.get(page))
    fact = due(person)
    Fact.objects.filter(pk=fact.pk).update(forget_at=timezone.now() + timedelta(days=2))
    shown = text_of(admin.get(page))
    assert "Nothing is due in these days." not in shown
    assert 'aria-labelledby="forecast"' in shown
