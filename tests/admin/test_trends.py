"""Trends below what needs the operator: over 7, 30 or 90 days, of all tenants or one."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memories.admin.dashboard import trends
from memories.admin.dashboard.trends import TrendPeriod, facts_by_outcome, percentile
from memories.models import DailySpending, LanguageModel, ServedDay, Tenant
from memories.models.conversations.serving import BUCKETS, CONTEXT_MS
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import text_of
from tests.admin.test_tenant_scope import limited

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
TRENDS = "admin:trends"


def shown(client: Client, **choice: Any) -> Any:
    page: Any = client.get(reverse(TRENDS), choice)
    assert page.status_code == 200
    return page.context


def served_on(tenant: Tenant, day: date, *, recalls: int = 0, **times: int) -> None:
    """`times` like ms_10=4: four contexts of up to 10 ms."""
    counts = [times.get(f"ms_{limit}", 0) for limit in CONTEXT_MS]
    ServedDay.objects.create(tenant=tenant, day=day, recalls=recalls, context_times=[*counts, 0])


def test_the_page_has_no_trend_but_fetches_them(admin: Client, staff: Client) -> None:
    """So that what they cost is not waited for."""
    index = text_of(admin.get(reverse("admin:index")))
    assert f'data-from="{reverse(TRENDS)}"' in index
    assert "New facts per day" not in index
    assert "New facts per day" in text_of(admin.get(reverse(TRENDS)))
    assert "data-from" not in text_of(staff.get(reverse("admin:index")))


def test_each_day_is_told_by_what_became_of_its_facts(admin: Client) -> None:
    now = timezone.now()
    person = factories.end_user()
    for number, status in enumerate(["active", "active", "pending", "rejected", "superseded", "trashed"]):
        factories.fact(person, f"Fact {number}", status=status, now=now)
    factories.fact(person, "Long ago", now=now - timedelta(days=40))
    chart = shown(admin)["facts"]
    assert chart.totals == (2, 1, 1, 1, 1)
    assert len(chart.columns) == 30
    assert chart.columns[-1].values == (2, 1, 1, 1, 1)
    assert shown(admin, days="7")["facts"].width == "70"
    assert shown(admin, days="90")["facts"].totals == (3, 1, 1, 1, 1)


def test_a_day_is_the_operators_own() -> None:
    person = factories.end_user()
    # Late in the evening in London is the next day in Shanghai.
    factories.fact(person, now=datetime(2026, 11, 3, 22, tzinfo=UTC))
    now = datetime(2026, 11, 5, 9, tzinfo=UTC)
    for zone, day in (("UTC", date(2026, 11, 3)), ("Asia/Shanghai", date(2026, 11, 4))):
        with timezone.override(zone):
            chart = facts_by_outcome(lambda rows, _path="": rows, TrendPeriod.of(30, now=now), now)
        assert [column.day for column in chart.columns if any(column.values)] == [day]


@pytest.mark.parametrize(
    ("times", "p95"),
    [
        ({}, None),
        ({10: 1}, 10),
        ({10: 95, 500: 5}, 10),
        ({10: 94, 500: 6}, 500),
        ({0: 1}, CONTEXT_MS[-1]),
    ],
)
def test_p95_is_the_limit_that_95_of_100_kept(times: dict[int, int], p95: int | None) -> None:
    counts = [times.get(limit, 0) for limit in (*CONTEXT_MS, 0)]
    assert len(counts) == BUCKETS
    assert percentile(counts) == p95


def test_what_was_served_adds_up(admin: Client) -> None:
    one, other, today = factories.tenant(), factories.tenant(), timezone.now().date()
    served_on(one, today, recalls=3, ms_10=9)
    served_on(other, today, recalls=4, ms_300=1)
    served_on(one, today - 3 * DAY, recalls=5, ms_10=40)
    served_on(one, today - 60 * DAY, recalls=100, ms_5000=100)
    seen = shown(admin)["served"]
    assert seen["recalls"].totals == (12,)
    assert (seen["contexts"], seen["p95_of_all"]) == (50, 10)
    assert [column.values for column in seen["p95"].columns if any(column.values)] == [(10,), (300,)]
    assert shown(admin, tenant=other.pk)["served"]["p95_of_all"] == 300
    assert shown(admin, days="90")["served"]["contexts"] == 150


def test_the_rate_of_approvals_leaves_out_what_settled_itself(admin: Client) -> None:
    now, person = timezone.now(), factories.end_user()
    assert "Nothing was decided in these days." in text_of(admin.get(reverse(TRENDS)))
    decisions = [("approved", 1), ("merged", 1), ("kept_both", 2), ("rejected", 1), ("settled", 1), ("rejected", 40)]
    for number, (state, days) in enumerate(decisions):
        fact = factories.fact(person, f"Fact {number}", status="pending")
        factories.review_item(fact, state=state, decided_at=now - days * DAY, decided_by="1")
    factories.review_item(factories.fact(person, "Waits", status="pending"))
    assert (shown(admin)["decided"].approved, shown(admin)["decided"].percent) == (3, 75)
    assert shown(admin, days="90")["decided"].percent == 60


def test_what_the_model_took(admin: Client) -> None:
    now, talk = timezone.now(), factories.session(factories.end_user())
    factories.run(talk, status="failed", failure="model_timeout", started_at=now, calls=3, prompt_tokens=210)
    factories.run(talk, started_at=now, calls=1, prompt_tokens=1000, completion_tokens=50)
    page = admin.get(reverse(TRENDS))
    context: Any = page.context
    assert context["tokens"]["chart"].totals == (1210, 50)
    assert "4 calls; set prices to see their cost" in text_of(page)


def test_calls_without_tokens_are_not_said_to_be_no_calls(admin: Client) -> None:
    assert "No calls yet" in text_of(admin.get(reverse(TRENDS)))
    talk = factories.session(factories.end_user())
    factories.run(talk, status="failed", failure="model_timeout", started_at=timezone.now(), calls=8)
    page = text_of(admin.get(reverse(TRENDS)))
    assert "8 calls" in page
    assert "counted no tokens" in page
    assert "was not called" not in page


def test_each_tenants_cost_stands_beside_its_cap(admin: Client) -> None:
    now = timezone.now()
    paying, capped, quiet = (factories.tenant(slug=slug) for slug in ("paying", "capped", "quiet"))
    for tenant, days, cost in ((paying, 0, "2.50"), (paying, 5, "1.25"), (capped, 0, "9"), (quiet, 60, "50")):
        DailySpending.objects.create(tenant=tenant, day=(now - days * DAY).date(), tokens=10, cost=Decimal(cost))
    LanguageModel.objects.create(tenant=capped, daily_cost=Decimal(5), updated_at=now)
    LanguageModel.objects.create(tenant=quiet, daily_tokens=100, updated_at=now)
    rows = shown(admin)["costs"]
    assert [(row.tenant.slug, row.cost, row.tokens) for row in rows] == [
        ("capped", Decimal(9), 10), ("paying", Decimal("3.75"), 20), ("quiet", Decimal(0), 0),
    ]  # fmt: skip
    assert [row.today.is_capped for row in rows] == [True, False, False]
    page = text_of(admin.get(reverse(TRENDS)))
    for said in ("$9.00 / $5.00", "$3.75", "0 / 100"):
        assert said in page


def test_each_trend_is_for_who_may_see_what_it_counts(staff_who_may: Callable[..., Client]) -> None:
    names = [name for _permission, name, _read in trends.TRENDS]
    for codename, seen in (
        ("view_fact", ["facts"]), ("view_reviewitem", ["decided"]), ("view_session", ["served"]),
        ("view_extractionrun", ["tokens", "costs"]), ("view_auditevent", []),
    ):  # fmt: skip
        context = shown(staff_who_may(codename))
        assert [name for name in names if name in context] == seen


def test_only_the_operators_own_tenants_count() -> None:
    own, other = factories.end_user(), factories.end_user()
    now = timezone.now()
    for person in (own, other):
        factories.fact(person, now=now)
        served_on(person.tenant, now.date(), recalls=1)
        DailySpending.objects.create(tenant=person.tenant, day=now.date(), tokens=10)
    client = signed_in(limited(own.tenant))
    for choice in ({}, {"tenant": own.tenant_id}, {"tenant": other.tenant_id}):
        context = shown(client, **choice)
        assert context["facts"].totals[0] == 1
        assert context["served"]["recalls"].totals == (1,)
        assert [row.tenant for row in context["costs"]] == [own.tenant]


@pytest.mark.parametrize("choice", [{"days": "8", "tenant": "x"}, {"days": "", "tenant": "\x00"}, {"days": "1e9"}])
def test_an_unknown_choice_is_the_usual_one(admin: Client, choice: dict[str, str]) -> None:
    factories.tenant()
    context = shown(admin, **choice)
    assert (context["length"], context["tenant"]) == (30, None)
