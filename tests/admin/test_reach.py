"""Operators who are limited to some tenants: what is of others is not there for them."""

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.test import Client

from memories.admin import reach
from memories.models import EndUser, Operator, Tenant
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import list_of, page_of, text_of

pytestmark = pytest.mark.django_db


def limited(*tenants: Tenant) -> Operator:
    operator = factories.operator(username="limited", is_superuser=True)
    operator.all_tenants = False
    operator.save(update_fields=["all_tenants"])
    operator.tenants.set(tenants)
    return operator


def records() -> list[Any]:
    """One of each kind, of a tenant of their own."""
    person = factories.end_user()
    session = factories.session(person)
    key, _ = factories.api_key(person.tenant)
    fact = factories.fact(person, "Likes tea", status="pending")
    made: list[Model] = [factories.run(session), factories.decay_pass(person.tenant), factories.episode(session)]
    return [person, session, key, fact, factories.review_item(fact), *made, person.tenant]


def test_pages_of_other_tenants_are_not_there() -> None:
    own, others = records(), records()
    client = signed_in(limited(own[0].tenant))
    assert [client.get(page_of(record)).status_code for record in own] == [200] * len(own)
    # Django answers for a tenant, whose page is a form of its own, by going back to the start.
    assert {client.get(page_of(record)).status_code for record in others} == {302, 404}


def test_lists_show_the_own_tenants_alone() -> None:
    own, others = factories.end_user(), factories.end_user()
    page = text_of(signed_in(limited(own.tenant)).get(list_of(EndUser)))
    assert own.external_id in page
    assert others.external_id not in page


def test_whose_tenants_are_gone_sees_nothing(client: Client) -> None:
    person = factories.end_user()
    assert list(reach.within(limited(), EndUser.objects.all())) == []
    assert list(reach.within(factories.operator(), EndUser.objects.all())) == [person]
    assert list(reach.within(AnonymousUser(), EndUser.objects.all())) == []


def test_a_tenant_beyond_reach_is_refused() -> None:
    own, other = factories.tenant(), factories.tenant()
    operator = limited(own)
    reach.check(operator, own)
    with pytest.raises(PermissionDenied):
        reach.check(operator, other)
