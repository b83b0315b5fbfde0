"""Approve, reject and reconsider: what becomes of a suggestion, and who may decide."""

from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from memories import conf
from memories.extraction import consolidation
from memories.models import AuditEvent, Fact, FactRefusal, FactRevision, Operator
from tests import factories
from tests.admin.pages import page_of, text_of
from tests.factories import NOW


@pytest.fixture
def suggestion(db: None, settings: Settings) -> Fact:
    settings.MEMORYHUB_LLM = conf.LLM_RULES
    extract(factories.end_user(), "我觉得我喜欢喝龙井茶。")
    return Fact.objects.get(status="pending")


def extract(person: Any, text: str) -> None:
    session = factories.session(person, [("user", text)], flush=True)
    assert consolidation.consolidate(session_id=session.pk, now=NOW)


def decide(client: Client, fact: Fact, verb: str, **over: Any) -> Any:
    return client.post(page_of(fact, verb), {"version": fact.version, "reason": "She told me", **over})


def test_approved_it_is_active_with_its_trust(admin: Client, administrator: Operator, suggestion: Fact) -> None:
    assert suggestion.flags == ["suggested_by_rules"]
    assert decide(admin, suggestion, "approve").status_code == 302
    fact = Fact.objects.get()
    assert (fact.status, fact.flags, fact.trust, fact.binding) == ("active", [], "user", False)
    revision = FactRevision.objects.get(fact=fact, verb="approve")
    assert (revision.reason, revision.actor_id) == ("She told me", str(administrator.pk))
    assert AuditEvent.objects.get(object_id=fact.pk).verb == "approve"


@pytest.mark.parametrize(("verb", "status"), [("reconsider", "pending"), ("approve", "active")])
def test_it_is_rejected_and_that_is_taken_back(admin: Client, suggestion: Fact, verb: str, status: str) -> None:
    assert decide(admin, suggestion, "reject").status_code == 302
    assert FactRefusal.objects.exists()
    assert decide(admin, Fact.objects.get(status="rejected"), verb).status_code == 302
    assert Fact.objects.get().status == status
    assert not FactRefusal.objects.exists()
    # Said again it is known.
    extract(suggestion.end_user, suggestion.raw)
    assert [known.status for known in Fact.objects.all()] == [status]


def test_what_is_over_or_changed_is_not_decided(admin: Client, suggestion: Fact) -> None:
    for verb in ("approve", "reject"):
        assert decide(admin, suggestion, verb, version=7).status_code == 412
    assert decide(admin, suggestion, "reconsider").status_code == 409
    active = factories.fact(suggestion.end_user, "Lives in Leiden")
    for verb in ("approve", "reject", "reconsider"):
        assert decide(admin, active, verb).status_code == 409
    assert set(Fact.objects.values_list("status", flat=True)) == {"pending", "active"}


def test_buttons_are_on_pages_of_suggestions_alone(admin: Client, suggestion: Fact) -> None:
    active = factories.fact(suggestion.end_user, "Lives in Leiden")
    waiting, other = text_of(admin.get(page_of(suggestion))), text_of(admin.get(page_of(active)))
    for label in ("Approve this fact", "Reject this fact"):
        assert label in waiting
        assert label not in other
