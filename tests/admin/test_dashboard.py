"""The first page: figures, the latest runs, and what to do when there is nothing."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memories.models import SessionQueue
from tests import factories
from tests.admin.pages import LIST_BUDGET, queries_of, shows_harmless, text_of

INDEX = "admin:index"


def figures(client: Client) -> dict[str, Any]:
    context = client.get(reverse(INDEX)).context
    return {name: context[name] for name in ("people", "facts", "review", "queue", "failed_today")}


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
    SessionQueue.objects.filter(pk=due.pk).update(due_at=now - timedelta(seconds=5), parked_at=None)
    SessionQueue.objects.filter(pk=parked.pk).update(due_at=None, parked_at=now)
    factories.run(due, status="failed", started_at=now - timedelta(hours=1))
    factories.run(due, status="failed", started_at=now - timedelta(days=3))
    seen = figures(admin)
    assert seen["people"] == 1
    assert seen["facts"] == {"active": 2, "this_week": 1}
    assert seen["review"] == {"waiting": 2, "oldest": asked}
    assert (seen["queue"]["due"], seen["queue"]["parked"]) == (1, 1)
    assert seen["failed_today"] == 1


def test_it_counts_this_weeks_failures_by_reason_and_what_the_model_took(admin: Client) -> None:
    now, talk = timezone.now(), factories.session(factories.end_user())
    for failure in ("model_timeout", "model_timeout", "model_refused"):
        factories.run(talk, status="failed", failure=failure, started_at=now, calls=1, prompt_tokens=70)
    factories.run(talk, started_at=now, calls=1, prompt_tokens=1000, completion_tokens=50)
    factories.run(talk, status="failed", failure="worker_lost", started_at=now - timedelta(days=8), calls=9)
    page = admin.get(reverse(INDEX))
    assert page.context["failures"] == [
        {"failure": "model_timeout", "count": 2},
        {"failure": "model_refused", "count": 1},
    ]
    assert page.context["spent"] == {"calls": 4, "prompt": 1210, "completion": 50, "cost": None}
    assert "not known" in text_of(page)


def test_it_says_what_to_do_when_nothing_is_remembered(admin: Client) -> None:
    assert "Nothing is remembered yet" in text_of(admin.get(reverse(INDEX)))
    factories.end_user()
    assert "Nothing is remembered yet" not in text_of(admin.get(reverse(INDEX)))


def test_runs_are_shown_to_those_who_may_see_runs(admin: Client, staff_who_may: Callable[..., Client]) -> None:
    factories.run(factories.session(factories.end_user(display_name="Katherine")))
    assert "Katherine" in text_of(admin.get(reverse(INDEX)))
    assert "Katherine" not in text_of(staff_who_may("view_fact").get(reverse(INDEX)))


def test_names_are_escaped(admin: Client) -> None:
    from tests.admin.pages import HOSTILE

    factories.run(factories.session(factories.end_user(display_name=HOSTILE)))
    assert shows_harmless(admin.get(reverse(INDEX)))


def test_it_takes_few_queries(admin: Client) -> None:
    for _ in range(12):
        factories.run(factories.session(factories.end_user()))
    # One more than a list: what is parked of working memories.
    assert queries_of(admin, reverse(INDEX)) <= LIST_BUDGET + 1
