"""Every operation of the document with every kind of key, against somebody of whom there is something of every kind.

A new operation is tried by itself, and so is a new way of binding a key: it fails here until a kind has it.
No key at all: test_authentication.py. A key for this person: test_bound_keys.py. Without the scope: test_scopes.py.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import pytest
from django.utils import timezone

from memories.curation.access.keys import Binding, revoke_api_key
from memories.models import APIKey, Tenant
from tests import factories
from tests.api.calls import SECRET, Ids, populated, send
from tests.api.client import HubClient, all_operations, management_operations, operations
from tests.api.conftest import Hub
from tests.api.test_bound_keys import AGENTS, DEFINITIONS, GROUPS, LISTS, STORE
from tests.api.test_isolation import everything_of
from tests.api.v1.test_management import call as manage
from tests.database import undone

pytestmark = pytest.mark.usefixtures("with_model")
UNAUTHORIZED = (401, "unauthorized")
# What an operation of a tenant's answers a key for another person or agent, by what it names.
ELSEWHERE = {(403, "key_bound"), (404, "not_found")}
# What agents of the same person do, or say, is no secret of one of them; a list is of nobody, an agent of no person.
SHARED = LISTS | DEFINITIONS | AGENTS | {"listStoreNamespaces"}


@dataclass(frozen=True)
class Kind:
    """A kind of key, and what it gets: one of these answers, and never anything of the person; None: what is
    documented. `opens`: operations that answer otherwise; the calls of all others need not be undone one by one."""

    made: Callable[[Tenant, Ids], str]
    gets: Callable[[str], set[tuple[int, str]]] | None = None
    opens: frozenset[str] = frozenset()

    def calls(self) -> list[list[str]]:
        """The operations, in one list those whose calls may be looked at together."""
        if self.gets is None:
            return [[one] for one in operations()]
        return [[one for one in operations() if one not in self.opens], *([one] for one in self.opens)]


def bound(**ids: Any) -> Callable[[Tenant, Ids], str]:
    return lambda tenant, own: factories.api_key(tenant, binding=Binding(**ids))[1]


def revoked(tenant: Tenant, own: Ids) -> str:
    key, plaintext = factories.api_key(tenant)
    revoke_api_key(key=key, actor=factories.COMMAND, now=timezone.now())
    return plaintext


def closed(made: Callable[[Tenant, Ids], str], answer: tuple[int, str]) -> Kind:
    return Kind(made, lambda operation: {answer})


def elsewhere(**ids: Any) -> Kind:
    return Kind(bound(user_id="somebody-else", **ids), lambda operation: ELSEWHERE, frozenset(SHARED))


KINDS: dict[str, Kind] = {
    "revoked": closed(revoked, UNAUTHORIZED),
    "managing": closed(lambda tenant, own: factories.management_key(tenant)[1], (403, "management_key")),
    "of somebody else, their agent's words": elsewhere(agent_id="helper", writes_as="agent", memory_of="agent"),
    "of an agent": Kind(bound(agent_id="helper")),
    "an agent's words": Kind(bound(writes_as="agent")),
    "of everybody": Kind(bound()),
}


def test_there_is_a_kind_for_every_way_of_binding(hub: Hub) -> None:
    own, seen = Ids(), set()
    for kind in KINDS.values():
        kind.made(hub.tenant, own)
    for key in APIKey.objects.filter(tenant=hub.tenant):
        binding, nothing = Binding.of(key), Binding()
        seen |= {one.name for one in fields(Binding) if getattr(binding, one.name) != getattr(nothing, one.name)}
    assert seen == {one.name for one in fields(Binding)}


# With a key for everybody one's own ids are tried by the positive control, another tenant's by test_isolation.py.
@pytest.mark.parametrize("kind", [name for name in KINDS if name != "of everybody"])
def test_every_operation(hub: Hub, other: Hub, kind: str) -> None:
    """The client compares each answer with the document; what is not of the key's business stays as it was."""
    theirs, stranger = populated(hub.tenant), populated(other.tenant)
    factories.end_user(hub.tenant, external_id="somebody-else")
    given = KINDS[kind]
    client = HubClient(given.made(hub.tenant, theirs))
    before, beyond = rows_of(hub), everything_of(other)
    for called in given.calls():
        with undone():
            for operation in called:
                answer = send(client, operation, theirs)
                assert answer.status_code < 500, operation
                if given.gets is not None:
                    content = answer.getvalue().decode()
                    told = json.loads(content) if content else {}
                    outcome = (answer.status_code, told.get("code", "") if isinstance(told, dict) else "")
                    assert operation in given.opens or outcome in given.gets(operation), (operation, outcome)
                    assert SECRET not in content, operation
            assert given.gets is None or rows_of(hub) == before, called
            for operation in called:
                # Another tenant's ids are nobody's, whatever the key.
                foreign = send(client, operation, stranger)
                assert foreign.status_code < 500, operation
                assert operation in SAID_BACK or SECRET not in foreign.getvalue().decode(), operation
            assert everything_of(other) == beyond, called


def rows_of(hub: Hub) -> dict[str, str]:
    """But for when a management key signed in."""
    return {table: digest for table, digest in everything_of(hub).items() if table != "ManagementKey"}


# What the caller sent itself may come back.
SAID_BACK = ("postTurns", "postTurnsBulk", "postTrajectory", "addFact", "addTriple")


@pytest.mark.parametrize("kind", ["revoked", "an agent's words", "of everybody"])
def test_every_operation_of_management_is_closed_to_keys_of_tenants(hub: Hub, kind: str) -> None:
    Tenant.objects.filter(pk=hub.tenant.pk).update(slug="acme")
    client = HubClient(KINDS[kind].made(hub.tenant, populated(hub.tenant)))
    before = everything_of(hub)
    for operation in management_operations():
        answer = manage(client, operation)
        assert answer.status_code in (401, 403), operation
        assert answer.json()["code"] in ("unauthorized", "no_management_key"), operation
    assert everything_of(hub) == before


def test_the_positive_control(hub: Hub) -> None:
    """With a key for everybody the same calls do what they are for."""
    theirs = populated(hub.tenant)
    told = set()
    for operation in operations():
        with undone():
            answer = send(hub.client, operation, theirs)
            assert answer.status_code < 300 or answer.status_code == 409, operation
            told |= {operation} if SECRET in answer.getvalue().decode() else set()
    assert len(told) > 15
    assert len(all_operations()) > 80
    assert operations().keys() >= (GROUPS | STORE)
