"""The audit trail: everybody's acts, newest first, for reading only."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memories import audit
from memories.audit import Actor
from memories.curation.access.keys import revoke_api_key
from memories.curation.facts.forgetting import forget_fact
from memories.curation.review.decisions import keep_both
from memories.curation.review.undo import undo_decision
from memories.models import AuditEvent, Operator, Tenant
from memories.models.ids import new_id
from memories.privacy.trail import sealing
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import list_of, page_of, text_of
from tests.admin.test_tenant_scope import limited


@pytest.fixture(autouse=True)
def apart(settings: Any, tmp_path: Any) -> None:
    """What is noted of the seals is this test's own."""
    settings.MEMORYHUB_ERASURE_LEDGER = str(tmp_path / "erasures.jsonl")


def test_it_says_who_did_what_to_which_object(admin: Client, administrator: Operator) -> None:
    fact = factories.fact(factories.end_user(factories.tenant(slug="acme-prod")), "Allergic to penicillin")
    actor = Actor.operator(administrator, request_id="req-7")
    forget_fact(fact_id=fact.pk, tenant=None, actor=actor, now=timezone.now())
    page = text_of(admin.get(list_of(AuditEvent)))
    for shown in ("Forget", "Fact", str(fact.pk), administrator.username, "acme-prod", "req-7"):
        assert shown in page
    assert "penicillin" not in page


def test_it_is_searched_by_object_and_verb(admin: Client) -> None:
    key, _ = factories.api_key(factories.tenant())
    revoke_api_key(key=key, actor=factories.COMMAND, now=timezone.now())
    assert [event.verb for event in found(admin, str(key.pk))] == ["revoke", "create"]
    assert [event.verb for event in found(admin, "revoke")] == ["revoke"]


@pytest.mark.parametrize(
    "given", ["anna-7:1", "7f0c2b1e55d94a3f8c6d2e1f0a9b8c7d", "01a20482-9763-76df-ab55-b733486a93bf"]
)
def test_it_names_nobody_whom_the_id_of_a_request_names(admin: Client, given: str) -> None:
    """It is for ever, so nobody could take that away; whoever knows the id finds it."""
    key, _ = factories.api_key(factories.tenant())
    admin.post(page_of(key, "revoke"), {}, headers={"X-Request-ID": given})
    event = AuditEvent.objects.get(verb="revoke")
    assert len(event.request_id.replace("-", "")) == 32
    assert (event.request_id == given) == ("anna" not in given)
    assert found(admin, given) == [event]
    assert found(admin, "anna") == []


def test_it_is_read_only(admin: Client) -> None:
    factories.api_key(factories.tenant())
    event = AuditEvent.objects.get()
    assert admin.post(page_of(event), {"verb": "nothing"}).status_code == 403
    assert admin.post(page_of(event, "delete"), {"post": "yes"}).status_code == 403
    assert AuditEvent.objects.get().verb == "create"


def found(client: Client, search: str) -> list[AuditEvent]:
    return list(client.get(list_of(AuditEvent), {"q": search}).context["cl"].result_list)


def test_verbs_are_told_in_words(admin: Client) -> None:
    actor, person = Actor.operator(factories.operator()), factories.end_user()
    known = factories.fact(person, "Likes tea")
    suggestion = factories.fact(person, "Hates tea", status="pending")
    item = factories.review_item(suggestion, known=known, kind="conflict", reason="less_sure")
    keep_both(item_id=item.pk, actor=actor, now=timezone.now())
    undo_decision(item_id=item.pk, actor=actor, now=timezone.now())
    page = text_of(admin.get(list_of(AuditEvent)))
    assert "Keep both" in page
    assert "Undo" in page
    assert str(item.pk) in page


def record(tenant: Tenant | None, verb: str = "forget", **over: Any) -> AuditEvent:
    given: dict[str, Any] = {"actor": factories.COMMAND, "target": Tenant, "object_id": new_id(), **over}
    return audit.record(verb=verb, tenant=tenant, **{"now": timezone.now(), **given})


def shown(client: Client, **chosen: Any) -> list[str]:
    response = client.get(list_of(AuditEvent), chosen)
    assert response.status_code == 200
    return [event.verb for event in response.context["cl"].result_list]


class TestFilters:
    @pytest.fixture
    def case(self, db: None) -> Any:
        return new_id()

    @pytest.fixture(autouse=True)
    def events(self, db: None, case: Any) -> Tenant:
        tenant = factories.tenant(slug="acme")
        record(tenant, "edit", now=timezone.now() - timedelta(days=8))
        record(factories.tenant(), "forget", target=Operator)
        record(None, "approve", case=case)
        return tenant

    def test_they_narrow_the_list(self, admin: Client, events: Tenant, case: Any) -> None:
        for chosen, verbs in (
            ({"verb": "edit"}, ["edit"]),
            ({"object_type": "Operator"}, ["forget"]),
            ({"actor_kind__exact": "command"}, ["approve", "forget", "edit"]),
            ({"tenant": "none"}, ["approve"]),
            ({"tenant": "nonsense"}, []),
            ({"case": "any"}, ["approve"]),
            ({"case": "none"}, ["forget", "edit"]),
            ({"case": "nonsense"}, []),
            ({"days": "7"}, ["approve", "forget"]),
            ({"days": "30"}, ["approve", "forget", "edit"]),
            ({"days": "nonsense"}, ["approve", "forget", "edit"]),
            ({"tenant": str(events.pk)}, ["edit"]),
            ({"case": str(case)}, ["approve"]),
        ):
            assert shown(admin, **chosen) == verbs, chosen

    def test_tenants_beyond_reach_are_not_offered(self, events: Tenant) -> None:
        client = signed_in(limited(events))
        response = client.get(list_of(AuditEvent))
        [chosen] = [spec for spec in response.context["cl"].filter_specs if spec.title == "Tenant"]
        assert [name for _, name in chosen.lookup_choices] == ["acme"]
        assert shown(client) == ["edit"]


def test_it_says_what_is_sealed(admin: Client) -> None:
    record(None, "edit")
    sealing.seal(now=timezone.now(), seconds=60.0, wait_seconds=0.0)
    record(None, "forget")
    listed = admin.get(list_of(AuditEvent)).context["cl"].result_list
    assert [(event.verb, event.is_sealed) for event in listed] == [("forget", False), ("edit", True)]


def test_links_lead_where_the_reader_may_follow(admin: Client, staff_who_may: Callable[..., Client]) -> None:
    fact = factories.fact(factories.end_user(), "Likes tea")
    gone = new_id()
    for object_id in (fact.pk, gone):
        record(fact.tenant, target=fact, object_id=object_id)
    page = text_of(admin.get(list_of(AuditEvent)))
    assert f'href="{page_of(fact)}"' in page
    assert str(gone) in page
    assert f"/{gone}/" not in page
    alone = text_of(staff_who_may("view_auditevent").get(list_of(AuditEvent)))
    assert str(fact.pk) in alone
    assert page_of(fact) not in alone


class TestLines:
    ADDRESS = "admin:memories_auditevent_lines"

    def taken(self, client: Client, query: str = "") -> list[dict[str, Any]]:
        response = client.post(reverse(self.ADDRESS), {"query": query})
        assert response.status_code == 200
        assert response["Content-Type"].startswith("application/jsonl")
        return [json.loads(line) for line in response.getvalue().splitlines()]

    def test_it_is_what_the_list_shows_the_oldest_first(self, admin: Client) -> None:
        tenant = factories.tenant()
        for verb in ("edit", "forget", "edit"):
            record(tenant, verb)
        sealing.seal(now=timezone.now(), seconds=60.0, wait_seconds=0.0)
        told = self.taken(admin, "verb=edit")
        assert [(line["verb"], line["seal"]) for line in told] == [("edit", 1), ("edit", 1)]
        left = AuditEvent.objects.latest("pk")
        assert (left.verb, left.object_type, left.counts) == ("export", "AuditEvent", {"rows": 2})

    def test_it_keeps_to_the_readers_tenants(self, db: None) -> None:
        mine, other = factories.tenant(), factories.tenant()
        for tenant in (mine, other, None):
            record(tenant)
        assert {line["tenant_uuid"] for line in self.taken(signed_in(limited(mine)))} == {str(mine.pk)}


class TestChains:
    @pytest.fixture
    def tenant(self, db: None) -> Tenant:
        tenant = factories.tenant(slug="acme")
        record(tenant)
        record(None)
        sealing.seal(now=timezone.now(), seconds=60.0, wait_seconds=0.0)
        record(tenant)
        return tenant

    def test_the_figures_of_each(self, admin: Client, tenant: Tenant) -> None:
        chains = admin.get(reverse("admin:audit_chains")).context["chains"]
        assert [(row["slug"], row["sealed"], row["links"]) for row in chains] == [("acme", 1, 1), (None, 1, 1)]

    def test_one_that_holds_and_one_that_does_not(self, admin: Client, tenant: Tenant) -> None:
        address = reverse("admin:audit_chain", args=[tenant.pk])
        report = admin.get(address).context["report"]
        assert (report.sealed, report.unsealed, report.broken) == (1, 1, None)
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")
            cursor.execute("UPDATE memories_auditevent SET verb = 'add'")
            cursor.execute("SET LOCAL session_replication_role = origin")
        assert "An event was changed after it was sealed." in text_of(admin.get(address))
        assert "An event was changed" in text_of(admin.get(reverse("admin:audit_chain_of_none")))

    def test_whoever_is_limited_sees_their_own(self, tenant: Tenant) -> None:
        record(other := factories.tenant())
        sealing.seal(now=timezone.now(), seconds=60.0, wait_seconds=0.0)
        client = signed_in(limited(other))
        assert [row["slug"] for row in client.get(reverse("admin:audit_chains")).context["chains"]] == [other.slug]
        assert client.get(reverse("admin:audit_chain_of_none")).status_code == 404

    def test_notes_that_cannot_be_read_are_said(self, admin: Client, tenant: Tenant, tmp_path: Any) -> None:
        (tmp_path / "audit-heads.json").write_text("nonsense")
        assert "cannot be read" in text_of(admin.get(reverse("admin:audit_chain", args=[tenant.pk])))
