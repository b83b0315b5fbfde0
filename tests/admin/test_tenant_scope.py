"""Operators who are limited to some tenants: what is of others is not there for them."""

from typing import Any
from unittest.mock import Mock

import pytest
from django.contrib import admin as django_admin
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from memories.admin.access import tenant_scope
from memories.admin.site.sidebar import navigation
from memories.models import (
    APIKey,
    AuditEvent,
    DecayPass,
    EndUser,
    Episode,
    ExtractionRun,
    Fact,
    Operator,
    ReviewItem,
    Session,
    Tenant,
)
from tests import factories
from tests.admin.cases import case_of
from tests.admin.conftest import signed_in
from tests.admin.pages import list_of, text_of

pytestmark = pytest.mark.django_db


def limited(*tenants: Tenant) -> Operator:
    operator = factories.operator(all_tenants=False)
    operator.tenants.set(tenants)
    return operator


def records() -> list[Any]:
    """One of each kind, of a tenant of their own."""
    person = factories.end_user()
    session = factories.session(person)
    key, _ = factories.api_key(person.tenant)
    fact = factories.fact(person, "Likes tea", status="pending")
    made: list[Model] = [factories.run(session), factories.decay_pass(person.tenant), factories.episode(session)]
    made += [factories.memory_file(person), factories.store_item(person), factories.diary_entry(person)]
    made += [factories.trajectory(person)]
    made += [factories.attachment(session.turns.all()[0], "Rye")]
    made += [factories.management_key(person.tenant)[0]]
    made += [
        triple := factories.triple(person, "Max", "works_at", "Acme"),
        triple.subject,
        factories.dream(person),
        factories.memory_group(person),
        factories.webhook(person.tenant),
    ]
    return [person, session, key, fact, factories.review_item(fact), *made, case_of(person), person.tenant]


def test_lists_and_pages_show_the_own_tenants_alone() -> None:
    own, others = records(), records()
    request: Any = Mock(user=limited(own[0].tenant))
    for mine, theirs in zip(own, others, strict=True):
        rows = django_admin.site._registry[type(mine)].get_queryset(request)
        assert mine in rows, type(mine)
        assert theirs not in rows, type(mine)


def test_whose_tenants_are_gone_sees_nothing(client: Client) -> None:
    person = factories.end_user()
    assert list(tenant_scope.within(limited(), EndUser.objects.all())) == []
    assert list(tenant_scope.within(factories.operator(), EndUser.objects.all())) == [person]
    assert list(tenant_scope.within(AnonymousUser(), EndUser.objects.all())) == []


def test_a_tenant_beyond_reach_is_refused() -> None:
    own, other = factories.tenant(), factories.tenant()
    operator = limited(own)
    tenant_scope.check(operator, own)
    with pytest.raises(PermissionDenied):
        tenant_scope.check(operator, other)


def test_a_list_offers_the_own_tenants_alone() -> None:
    own, other = factories.tenant(slug="mine"), factories.tenant(slug="not-yours")
    client, every = signed_in(limited(own)), signed_in(factories.operator())
    for tenant in (own, other):
        # A list without rows offers no choices.
        session = factories.session(factories.end_user(tenant))
        factories.review_item(factories.fact(session.end_user, status="pending"))
        factories.run(session)
        factories.episode(session)
        factories.api_key(tenant)
        factories.decay_pass(tenant)
    for model in (EndUser, Fact, Episode, Session, ExtractionRun, ReviewItem, APIKey, DecayPass):
        assert other.slug not in text_of(client.get(list_of(model))), model
        assert other.slug in text_of(every.get(list_of(model))), model


def test_a_lookup_in_the_address_reaches_no_further() -> None:
    own, other = factories.fact(factories.end_user()), factories.fact(factories.end_user(), "Likes tea")
    client = signed_in(limited(own.tenant))
    for query in (f"tenant__id__exact={other.tenant_id}", f"end_user__id__exact={other.end_user_id}"):
        assert "Likes tea" not in text_of(client.get(f"{list_of(Fact)}?{query}"))


def test_the_badge_counts_the_own_items() -> None:
    own, other = factories.fact(factories.end_user()), factories.fact(factories.end_user())
    factories.review_item(own)
    factories.review_item(other)
    factories.review_item(other, kind="flagged")

    def badge(operator: Operator) -> str:
        menu = navigation(Mock(user=operator, path="/", frame_counts=None))
        return str(next(item["badge"] for group in menu for item in group["items"] if item["title"] == "Review"))

    assert (badge(limited(own.tenant)), badge(factories.operator())) == ("1", "3")


def test_a_key_is_made_for_the_own_tenants_alone() -> None:
    own, other = factories.tenant(slug="mine"), factories.tenant(slug="not-yours")
    client, address = signed_in(limited(own)), f"{list_of(APIKey)}add/"
    assert "not-yours" not in text_of(client.get(address))
    form = {"name": "bot", "scopes": ["read"]}
    assert client.post(address, {**form, "tenant": other.pk}).status_code == 400
    assert not APIKey.objects.exists()
    assert client.post(address, {**form, "tenant": own.pk}).status_code == 200


def test_nothing_of_others_is_rolled_back() -> None:
    own, other = factories.tenant(slug="mine"), factories.tenant(slug="not-yours")
    key, _ = factories.api_key(other, name="theirs")
    client, address = signed_in(limited(own)), reverse("admin:rollback")
    page = text_of(client.get(f"{address}?tenant={other.pk}&key={key.pk}"))
    assert "not-yours" not in page
    assert key.prefix not in page
    refused = client.post(address, {"tenant": other.pk, "agent": "bot", "confirmed": "1"})
    assert refused.status_code == 400
    assert client.post(address, {"tenant": own.pk, "key": key.pk, "confirmed": "1"}).status_code == 400
    assert client.post(address, {"tenant": own.pk, "agent": "bot", "confirmed": "1"}).status_code == 302


def test_forgetting_and_retention_offer_the_own_tenants_alone() -> None:
    own, _other = factories.tenant(slug="mine"), factories.tenant(slug="not-yours")
    client = signed_in(limited(own))
    for name in ("forgetting", "retention"):
        page = text_of(client.get(reverse(f"admin:{name}")))
        assert "mine" in page
        assert "not-yours" not in page


def test_the_trail_tells_of_the_own_tenants_alone() -> None:
    own, other = factories.api_key(factories.tenant())[0], factories.api_key(factories.tenant())[0]
    page = text_of(signed_in(limited(own.tenant)).get(list_of(AuditEvent)))
    assert str(own.pk) in page
    assert str(other.pk) not in page


def test_who_sees_some_tenants_makes_none() -> None:
    address = f"{list_of(Tenant)}add/"
    assert signed_in(limited(factories.tenant())).get(address).status_code == 403
    assert signed_in(factories.operator()).get(address).status_code == 200
