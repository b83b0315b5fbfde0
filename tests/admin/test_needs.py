"""What needs the operator: each kind of work for those who can do it, and a link to exactly what is counted."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import Min
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from memories.admin.dashboard.figures import ToReview
from memories.admin.dashboard.needs import WORK, Need, needs
from memories.models import APIKey, PrivacyCase, ReviewItem, SessionQueue, Tenant, WorkingMemory
from memories.models.access.roles import ROLES
from memories.queue import outages
from tests import factories
from tests.admin.cases import case_of
from tests.admin.conftest import signed_in
from tests.admin.pages import text_of
from tests.admin.test_tenant_scope import limited
from tests.queue.test_own_endpoints import open_circuit, own

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def has_model(settings: Settings) -> None:
    settings.MEMORYHUB_LLM = "openai"


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
        model._default_manager.filter(pk=stuck.pk).update(parked_at=now - DAY, due_at=None, failure="model_refused")
    waits, later = factories.session(person), factories.session(person)
    SessionQueue.objects.filter(pk=waits.pk).update(due_at=now - DAY, parked_at=None)
    SessionQueue.objects.filter(pk=later.pk).update(due_at=now + DAY, parked_at=None)
    open_circuit(None)
    factories.webhook(person.tenant, disabled_at=now - DAY, disabled_for="failing")
    factories.webhook(person.tenant)
    factories.decay_pass(person.tenant, state="held", started_at=now - DAY)
    factories.decay_pass(person.tenant, state="done", started_at=now - 3 * DAY)
    factories.dream(person, doubted_at=now - DAY)
    factories.dream(person)
    held = factories.fact(person, status="pending")
    factories.review_item(held, created_at=now - DAY)
    factories.review_item(held, kind="flagged", reason="instructions", created_at=now - 4 * DAY, state="approved")
    factories.triple(person, "Max", "works_at", "Acme", status="pending")
    factories.skill(person, waits_since=now - DAY)
    factories.skill(person)
    factories.triple(person, "Max", "works_at", "NewCo")
    for days in (3, 90):
        factories.api_key(person.tenant, expires_at=now + days * DAY)
    return person


def found(has_perm: Callable[[str], bool] = lambda _permission: True, *, now: datetime | None = None) -> list[Need]:
    now, items = now or timezone.now(), ReviewItem.objects.waiting()
    review = ToReview(items.count(), items.aggregate(first=Min("created_at"))["first"])
    down = outages.outages(Tenant.objects.all())
    return needs(lambda rows, *_path: rows, has_perm, review=review, outages=down, now=now)


def test_nothing_needs_anybody_at_first(admin: Client) -> None:
    assert found() == []
    assert "Nothing waits for you." in text_of(admin.get(reverse("admin:index")))


def test_each_kind_is_counted_with_its_age() -> None:
    now = timezone.now()
    everything(now)
    shown = found(now=now)
    assert [need.text for need in shown] == [
        "1 privacy case is overdue",
        "1 erasure waits for approval",
        "1 file is to be handed over",
        "1 privacy case is on hold or failed",
        "1 privacy case is due this week",
        "The model does not answer: 1 session waits",
        "Extraction is parked for 1 session",
        "Working memory is parked for 1 session",
        "1 webhook failed and is disabled",
        "1 clean-up is held",
        "1 dream to look at",
        "1 item to review",
        "1 skill to review",
        "1 triple waits for an operator",
        "1 API key expires this week",
    ]
    by_text = {need.text: need for need in shown}
    assert by_text["1 item to review"].moment == now - DAY
    assert by_text["1 API key expires this week"].moment == now + 3 * DAY


def test_each_link_shows_what_is_counted(admin: Client) -> None:
    everything(timezone.now())
    for work in WORK:
        context: Any = admin.get(work.link).context
        count = context["left"] if "left" in context else context["cl"].result_count
        assert count == work.rows(timezone.now()).count() == 1, (work.model, work.tab)


def test_each_role_sees_its_own_work() -> None:
    everything(timezone.now())
    words = {
        "items": "to review",
        "outage": "does not answer",
        "parked": "parked",
        "held": "held",
        "dream": "dream",
        "triples": "for an operator",
        "key": "API key",
        "case": "privacy case",
    }
    for role, kinds in {
        "reviewer": {"items"},
        "operator": {"items", "outage", "parked", "held", "dream", "triples", "key"},
        "dpo": {"case"},
        "auditor": set[str](),
    }.items():
        shown = " ".join(need.text for need in found(lambda permission, role=role: permission in ROLES[role]))  # type: ignore[misc]
        assert {kind for kind, word in words.items() if word in shown} == kinds, role


def test_work_of_other_tenants_is_not_mine() -> None:
    person = everything(timezone.now())
    everything(timezone.now())
    page = text_of(signed_in(limited(person.tenant)).get(reverse("admin:index")))
    assert "1 item to review" in page
    assert APIKey.objects.count() == 4
    assert PrivacyCase.objects.count() == 12


def test_an_outage_needs_somebody_before_anything_waits(admin: Client) -> None:
    open_circuit(None)
    assert [need.text for need in found()] == ["The model does not answer: 0 sessions wait"]
    assert "Nothing waits for you." not in text_of(admin.get(reverse("admin:index")))


def test_an_outage_counts_the_sessions_that_ask_this_endpoint(admin: Client) -> None:
    """Those of a tenant with an endpoint of its own wait for that one."""
    one, other = factories.end_user(), factories.end_user()
    own(one.tenant, base_url="https://models.example/v1", model="m")
    for person in (one, other):
        for failure in ("model_timeout", "model_refused"):
            talk = factories.session(person)
            WorkingMemory.objects.filter(pk=talk.pk).update(parked_at=timezone.now(), failure=failure)
        SessionQueue.objects.update(due_at=None)
    tab: Any = next(work.link for work in WORK if work.tab == "outage")
    for owner, waiting in ((one.tenant_id, 1), (None, 2)):
        open_circuit(owner)
        assert sum(outage.waiting for outage in outages.outages(Tenant.objects.all())) == waiting
        assert admin.get(tab).context["cl"].result_count == waiting


@pytest.mark.parametrize("page", ["admin:index", "admin:figures"])
def test_the_items_to_review_are_counted_once(admin: Client, page: str) -> None:
    factories.review_item(factories.fact(factories.end_user(), status="pending"))
    with CaptureQueriesContext(connection) as queries:
        assert "1 item to review" in text_of(admin.get(reverse(page)))
    asked = [query["sql"] for query in queries if 'FROM "memories_reviewitem"' in query["sql"]]
    # The people with the most items are counted by person, and the oldest item is looked up.
    assert len([sql for sql in asked if "count(" in sql.lower() and '"end_user_id"' not in sql]) == 1
