"""The audit trail: everybody's acts, newest first, for reading only."""

from django.test import Client
from django.utils import timezone

from memories import curation
from memories.audit import Actor
from memories.models import AuditEvent, Operator
from tests import factories
from tests.admin.pages import LIST_BUDGET, list_of, page_of, queries_of, text_of


def test_it_says_who_did_what_to_which_object(admin: Client, administrator: Operator) -> None:
    fact = factories.fact(factories.end_user(factories.tenant(slug="acme-prod")), "Allergic to penicillin")
    actor = Actor.operator(administrator, request_id="req-7")
    curation.forget_fact(fact_id=fact.pk, tenant=None, actor=actor, now=timezone.now())
    page = text_of(admin.get(list_of(AuditEvent)))
    for shown in ("Forget", "Fact", str(fact.pk), administrator.username, "acme-prod", "req-7"):
        assert shown in page
    assert "penicillin" not in page


def test_it_is_searched_by_object_and_verb(admin: Client) -> None:
    key, _ = factories.api_key(factories.tenant())
    curation.revoke_api_key(key=key, actor=factories.COMMAND, now=timezone.now())
    assert [event.verb for event in found(admin, str(key.pk))] == ["revoke", "create"]
    assert [event.verb for event in found(admin, "revoke")] == ["revoke"]


def test_it_is_read_only(admin: Client) -> None:
    factories.api_key(factories.tenant())
    event = AuditEvent.objects.get()
    assert admin.post(page_of(event), {"verb": "nothing"}).status_code == 403
    assert admin.post(page_of(event, "delete"), {"post": "yes"}).status_code == 403
    assert AuditEvent.objects.get().verb == "create"


def test_it_takes_few_queries(admin: Client, administrator: Operator) -> None:
    few = queries_of(admin, list_of(AuditEvent))
    for _ in range(30):
        factories.api_key(factories.tenant(), actor=Actor.operator(administrator))
    assert queries_of(admin, list_of(AuditEvent)) <= few + 1 <= LIST_BUDGET


def found(client: Client, search: str) -> list[AuditEvent]:
    return list(client.get(list_of(AuditEvent), {"q": search}).context["cl"].result_list)


def test_verbs_are_told_in_words(admin: Client) -> None:
    actor, person = Actor.operator(factories.operator()), factories.end_user()
    known = factories.fact(person, "Likes tea")
    suggestion = factories.fact(person, "Hates tea", status="pending")
    item = factories.review_item(suggestion, known=known, kind="conflict", reason="less_sure")
    curation.keep_both(item_id=item.pk, actor=actor, now=timezone.now())
    curation.undo_decision(item_id=item.pk, actor=actor, now=timezone.now())
    page = text_of(admin.get(list_of(AuditEvent)))
    assert "Keep both" in page
    assert "Undo" in page
    assert str(item.pk) in page
