"""What needs the operator: each kind of work for those who can do it, and a link to exactly what is counted."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memories.admin.dashboard.needs import WORK, Work, needs
from memories.models import APIKey, PrivacyCase, SessionQueue, WorkingMemory
from memories.models.access.roles import ROLES
from tests import factories
from tests.admin.cases import case_of
from tests.admin.conftest import signed_in
from tests.admin.pages import text_of
from tests.admin.test_tenant_scope import limited

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


def everything(now: datetime) -> Any:
    """Some work of each kind, and beside it what needs nobody; the person."""
    person = factories.end_user()
    case_of(person, days=-2)
    case_of(person, "scoped", type="erasure", days=20)
    case_of(person, "on_hold", days=20)
    case_of(person, days=3)
    case_of(person, "completed", days=-2)
    made = case_of(person, "completed", type="access", days=20)
    factories.privacy_export(made, expires_at=now + 7 * DAY)
    for model in (SessionQueue, WorkingMemory):
        stuck = factories.session(person)
        model._default_manager.filter(pk=stuck.pk).update(parked_at=now - DAY, due_at=None, failure="model_timeout")
    factories.decay_pass(person.tenant, state="held", started_at=now - DAY)
    factories.decay_pass(person.tenant, state="done", started_at=now - 3 * DAY)
    held = factories.fact(person, status="pending")
    factories.review_item(held, created_at=now - DAY)
    factories.review_item(held, kind="flagged", reason="instructions", created_at=now - 4 * DAY, state="approved")
    for days in (3, 90):
        factories.api_key(person.tenant, expires_at=now + days * DAY)
    return person


def found(has_perm: Callable[[str], bool] = lambda _permission: True) -> list[str]:
    return [need.text for need in needs(lambda rows, *_path: rows, has_perm, now=timezone.now())]


def test_nothing_needs_anybody_at_first(admin: Client) -> None:
    assert found() == []
    assert "Nothing waits for you." in text_of(admin.get(reverse("admin:index")))


def test_each_kind_is_counted_with_its_age() -> None:
    now = timezone.now()
    everything(now)
    shown = needs(lambda rows, *_path: rows, lambda _permission: True, now=now)
    assert [need.text for need in shown] == [
        "1 privacy case is overdue",
        "1 erasure waits for approval",
        "1 file is to be handed over",
        "1 privacy case is on hold or failed",
        "1 privacy case is due this week",
        "Extraction is parked for 1 session",
        "Working memory is parked for 1 session",
        "1 clean-up is held",
        "1 item to review",
        "1 API key expires this week",
    ]
    by_text = {need.text: need for need in shown}
    assert by_text["1 item to review"].moment == now - DAY
    assert by_text["1 API key expires this week"].moment == now + 3 * DAY


@pytest.mark.parametrize("work", WORK, ids=lambda work: f"{work.model.__name__}-{work.tab}")
def test_the_link_shows_what_is_counted(admin: Client, work: Work) -> None:
    everything(timezone.now())
    context: Any = admin.get(work.link).context
    count = context["left"] if "left" in context else context["cl"].result_count
    assert count == work.rows(timezone.now()).count() == 1


@pytest.mark.parametrize(
    ("role", "kinds"),
    [("reviewer", {"items"}), ("operator", {"items", "parked", "held", "key"}), ("dpo", {"case"}), ("auditor", set())],
)
def test_each_role_sees_its_own_work(role: str, kinds: set[str]) -> None:
    everything(timezone.now())
    words = {"items": "to review", "parked": "parked", "held": "held", "key": "API key", "case": "privacy case"}
    shown = " ".join(found(lambda permission: permission in ROLES[role]))
    assert {kind for kind, word in words.items() if word in shown} == kinds


def test_work_of_other_tenants_is_not_mine() -> None:
    person = everything(timezone.now())
    everything(timezone.now())
    page = text_of(signed_in(limited(person.tenant)).get(reverse("admin:index")))
    assert "1 item to review" in page
    assert APIKey.objects.count() == 4
    assert PrivacyCase.objects.count() == 12
