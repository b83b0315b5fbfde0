"""The first page: figures, the latest runs, and what to do when there is nothing."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from memories.admin.dashboard.figures import ToReview
from memories.models import EmbeddingSpace, Fact, SessionQueue, TurnVector
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import page_of, text_of

pytestmark = pytest.mark.django_db

INDEX, FIGURES = "admin:index", "admin:figures"
DAY = timedelta(days=1)


def figures(client: Client) -> dict[str, Any]:
    context = client.get(reverse(INDEX)).context
    return {name: context[name] for name in ("people", "facts", "review", "queue", "failed_today", "fading")}


def test_it_counts_people_facts_queue_and_failures(admin: Client) -> None:
    now = timezone.now()
    person = factories.end_user()
    factories.fact(person, "Old")
    factories.fact(person, "New", now=now)
    held = factories.fact(person, "Held", status="pending")
    asked = factories.review_item(held, created_at=now - timedelta(days=3)).created_at
    factories.review_item(held, kind="flagged", reason="instructions", created_at=now)
    factories.review_item(held, state="approved", created_at=now - timedelta(days=9))
    due, parked = factories.session(person), factories.session(person)
    SessionQueue.objects.filter(pk=due.pk).update(due_at=now - timedelta(seconds=90), parked_at=None)
    SessionQueue.objects.filter(pk=parked.pk).update(due_at=None, parked_at=now)
    factories.run(due, status="failed", started_at=now - timedelta(hours=1))
    factories.run(due, status="failed", started_at=now - timedelta(days=3))
    seen = figures(admin)
    assert seen["people"] == 1
    assert (seen["facts"]["active"], seen["facts"]["this_week"]) == (2, 1)
    assert seen["review"] == ToReview(waiting=2, oldest=asked)
    assert [seen["queue"][name] for name in ("waiting", "due", "overdue", "parked")] == [1, 1, 1, 1]
    assert seen["failed_today"] == 1


def test_it_counts_this_weeks_failures_by_reason(admin: Client) -> None:
    now, talk = timezone.now(), factories.session(factories.end_user())
    for failure in ("model_timeout", "model_timeout", "model_refused"):
        factories.run(talk, status="failed", failure=failure, started_at=now)
    factories.run(talk, started_at=now)
    factories.run(talk, status="failed", failure="worker_lost", started_at=now - timedelta(days=8))
    page = admin.get(reverse(INDEX))
    assert page.context["failures"] == [
        {"failure": "model_timeout", "count": 2, "today": 2},
        {"failure": "model_refused", "count": 1, "today": 1},
    ]


def test_it_says_what_to_do_when_nothing_is_remembered(admin: Client, staff_who_may: Callable[..., Client]) -> None:
    reader = staff_who_may("view_enduser")
    assert "Nothing is remembered yet" in text_of(reader.get(reverse(INDEX)))
    # Who can take the first steps is shown them instead.
    assert "Nothing is remembered yet" not in text_of(admin.get(reverse(INDEX)))
    factories.end_user()
    assert "Nothing is remembered yet" not in text_of(reader.get(reverse(INDEX)))


def test_runs_are_shown_to_those_who_may_see_runs(admin: Client, staff_who_may: Callable[..., Client]) -> None:
    factories.run(factories.session(factories.end_user(display_name="Katherine")))
    assert "Katherine" in text_of(admin.get(reverse(INDEX)))
    assert "Katherine" not in text_of(staff_who_may("view_fact").get(reverse(INDEX)))


def test_who_has_most_to_review_comes_first(admin: Client) -> None:
    tenant = factories.tenant()
    people = [factories.end_user(tenant, display_name=name) for name in ("Ann", "Ben", "Cai")]
    for person, asked in zip(people, (1, 3, 0), strict=True):
        for number in range(asked):
            factories.review_item(factories.fact(person, f"Held {number}", status="pending"))
    factories.fact(people[1], "Known")
    shown = admin.get(reverse(INDEX)).context["most_to_review"]
    assert [(row["person"].display_name, row["waiting"], row["active"]) for row in shown] == [
        ("Ben", 3, 1),
        ("Ann", 1, 0),
    ]


def test_it_says_what_the_next_passes_take(admin: Client) -> None:
    now = timezone.now()
    person, restricted = factories.end_user(), factories.end_user(restricted_at=now)
    for one in (person, restricted):
        Fact.objects.filter(pk=factories.fact(one).pk).update(forget_at=now - DAY)
    factories.fact(person, "Over", expires_at=now - DAY)
    held = factories.decay_pass(factories.tenant(slug="held"), state="held")
    page = admin.get(reverse(INDEX))
    rows = [(row["tenant"].slug, row["facts"], row["expired"]) for row in page.context["fading"]["tenants"]]
    assert rows == [("held", 0, 0), (person.tenant.slug, 1, 1)]
    assert page_of(held) in text_of(page)


def test_it_counts_within_the_operators_reach_alone() -> None:
    now, own, other = timezone.now(), factories.end_user(), factories.end_user(display_name="Hidden")
    operator = factories.operator()
    operator.all_tenants = False
    operator.save(update_fields=["all_tenants"])
    operator.tenants.set([own.tenant])
    for person in (own, other):
        session = factories.session(person)
        SessionQueue.objects.update(due_at=now - DAY)
        factories.run(session, status="failed", failure="model_timeout", started_at=now)
        fact = factories.fact(person, now=now)
        factories.review_item(fact, created_at=now)
        Fact.objects.filter(pk=fact.pk).update(forget_at=now - DAY)
    page = signed_in(operator).get(reverse(INDEX))
    seen = page.context
    assert (seen["people"], seen["tenants"], seen["facts"]["active"], seen["review"].waiting) == (1, 1, 1, 1)
    assert (seen["queue"]["waiting"], seen["failed_today"]) == (1, 1)
    assert [row["tenant"] for row in seen["fading"]["tenants"]] == [own.tenant]
    assert "Hidden" not in text_of(page)


def test_who_may_see_nothing_is_told_no_figure(staff: Client) -> None:
    factories.review_item(factories.fact(factories.end_user(display_name="Hidden")))
    seen = staff.get(reverse(INDEX)).context
    assert [
        name for name in ("people", "facts", "review", "queue", "most_to_review", "fading", "runs") if name in seen
    ] == []


def test_the_figures_alone_are_for_who_is_signed_in(admin: Client, client: Client) -> None:
    text = text_of(admin.get(reverse(FIGURES)))
    assert "Pending review" in text
    assert "<html" not in text
    assert client.get(reverse(FIGURES)).status_code == 302


@pytest.mark.parametrize(
    ("mode", "model"),
    [("openai", "gpt-4o-mini"), ("rules", "none: simple rules are used"), ("off", "none: no extraction")],
)
def test_it_says_which_model_is_in_use(mode: str, model: str, admin: Client, settings: Settings) -> None:
    settings.MEMORYHUB_LLM = mode
    assert model in text_of(admin.get(reverse(INDEX)))


def test_it_says_that_the_local_embedding_is_in_use(admin: Client, settings: Settings) -> None:
    told = "The built-in embedding is in use"
    assert told in text_of(admin.get(reverse(INDEX)))
    settings.MEMORYHUB_EMBEDDINGS = "openai"
    assert told not in text_of(admin.get(reverse(INDEX)))


def test_a_change_of_the_embedding_model_shows_how_far_it_is(admin: Client) -> None:
    person = factories.end_user()
    talk = factories.session(person, [("user", "Hello"), ("assistant", "Hi")])
    given = {"dimensions": 2, "created_at": timezone.now()}
    serving = EmbeddingSpace.objects.create(model="old-1", state="serving", **given)
    assert "Re-embedding" not in text_of(admin.get(reverse(INDEX)))
    building = EmbeddingSpace.objects.create(model="new-1", state="building", **given)
    for turn in talk.turns.all():
        for space in [serving, building] if turn.number == 1 else [serving]:
            TurnVector.objects.create(
                space=space, tenant=person.tenant, end_user=person, language="en", vector=[1, 0],
                turn=turn, session=talk, number=turn.number,
            )  # fmt: skip
    page = text_of(admin.get(reverse(INDEX)))
    assert "Re-embedding with new-1" in page
    assert "1 of 2" in page
