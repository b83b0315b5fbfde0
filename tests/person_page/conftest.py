"""A person with a link to their page, and a browser that has opened it."""

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from memories.audit import Actor
from memories.curation.people import page_links
from memories.models import ActorKind, APIKey, EndUser, PersonLink
from memories.models.people.tenants import PersonMay
from tests import factories


@dataclass
class Own:
    """A person, the key that makes links to their page, and a browser without any other cookie."""

    person: EndUser
    key: APIKey
    client: Client = field(default_factory=lambda: Client(enforce_csrf_checks=True))

    def link(self, *, now: datetime | None = None, **over: Any) -> tuple[PersonLink, str]:
        """A new link, and its address."""
        actor = Actor(kind=ActorKind.KEY, id=str(self.key.pk))
        given = {"person": self.person, "key": self.key, "actor": actor, "now": now or timezone.now(), **over}
        link, token = page_links.make_link(**given)
        return link, f"/me/open/{token}"

    def open(self, **over: Any) -> PersonLink:
        """Open a new link in the browser."""
        link, address = self.link(**over)
        assert self.client.get(address).status_code == 303
        return link

    def get(self, path: str = "", status: int = 200) -> str:
        answer = self.client.get(f"/me/{path}")
        assert answer.status_code == status, answer.content.decode()
        return answer.content.decode()

    def post(self, path: str, *, page: str = "", token: str | None = None, headers: Any = None, **form: str) -> Any:
        """Send a form as the page has it."""
        if token is None:
            found = re.search('name="token" value="([^"]+)"', self.get(page))
            assert found
            token = found[1]
        return self.client.post(f"/me/{path}", {"token": token, **form}, headers=headers)


def own_page(person: EndUser | None = None) -> Own:
    person = person or factories.end_user(factories.tenant(name="Acme", person_page=True), external_id="secret-id-7")
    person.tenant.person_page, person.tenant.person_may = True, list(PersonMay.values)
    person.tenant.save()
    key, _ = factories.api_key(person.tenant)
    return Own(person, key)


@pytest.fixture
def own(db: None) -> Own:
    return own_page()


@pytest.fixture
def others(db: None) -> Own:
    """Somebody else of another tenant."""
    return own_page()
