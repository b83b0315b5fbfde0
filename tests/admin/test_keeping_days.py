"""Retention in the admin: what the next pass deletes, the latest passes, and one run now by whoever may."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memories.models import AuditEvent, Episode, Operator, RetentionPass, Tenant
from memories.privacy import retention
from tests import factories
from tests.admin.pages import page_of, text_of
from tests.privacy.retained import DAY, retain


@pytest.fixture
def tenant(db: None) -> Tenant:
    tenant = factories.tenant(slug="acme", keep_episodes_days=30)
    session = factories.session(factories.end_user(tenant))
    factories.episode(session, "Secretly likes tea", now=timezone.now() - 31 * DAY)
    return tenant


def page(tenant: Tenant) -> str:
    return reverse("admin:next_retention_pass", args=[tenant.pk])


def counts(response: Any) -> dict[str, int]:
    return {str(word): count for word, count in response.context["counts"] if count}


def test_it_tells_what_would_go_and_nobodys_words(admin: Client, tenant: Tenant) -> None:
    response = admin.get(page(tenant))
    assert counts(response) == {"Episodes": 1}
    assert "tea" not in text_of(response)
    assert "30 days" in text_of(response)
    # The link to the days names the first field: a browser opens the folded section of that.
    assert f'{page_of(tenant)}#id_keep_turns_days"' in text_of(response)
    assert 'id="id_keep_turns_days"' in text_of(admin.get(page_of(tenant)))
    assert Episode.objects.exists()


def test_a_pass_is_run_and_then_told_of(admin: Client, administrator: Operator, tenant: Tenant) -> None:
    assert admin.post(page(tenant)).status_code == 302
    row = RetentionPass.objects.get()
    assert (row.trigger, row.actor_id) == ("operator", str(administrator.pk))
    assert AuditEvent.objects.latest("pk").verb == "run"
    assert "pass is running" in text_of(admin.post(page(tenant), follow=True))
    retention.run_slice(now=timezone.now(), seconds=60.0)
    assert not Episode.objects.exists()
    done = text_of(admin.get(page(tenant)))
    assert "Episodes: 1" in done
    assert "Nothing is old enough" in done
    assert "Delete it now" not in done


def test_a_pass_that_failed_says_why(admin: Client, tenant: Tenant) -> None:
    admin.post(page(tenant))
    RetentionPass.objects.update(failure="worker_lost", finished_at=timezone.now())
    assert "The worker stopped during each attempt" in text_of(admin.get(page(tenant)))


def test_the_choice_of_a_tenant(admin: Client, tenant: Tenant) -> None:
    assert page(tenant) in text_of(admin.get(reverse("admin:retention")))
    assert retain(tenant) == {"episodes": 1}
