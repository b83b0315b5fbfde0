"""Turns that a key posts open sessions with the key's choice of whose memory they become."""

import pytest

from memories.curation.access.keys import Binding
from memories.models import MemoryOf, Session
from tests.api.conftest import Hub, hub_of


@pytest.mark.parametrize("address", ["/turns", "/turns/bulk"])
def test_the_keys_choice_goes_with_what_it_posts(hub: Hub, address: str) -> None:
    own = hub_of(hub.tenant, binding=Binding(memory_of=MemoryOf.AGENT))
    for one, session in ((own, "s1"), (hub, "s2")):
        talk = {"user_id": "u1", "session_id": session, "messages": [{"role": "user", "content": "Hello"}]}
        body = {"conversations": [talk]} if address.endswith("bulk") else talk
        assert one.client.post(address, body).status_code == 202
    assert dict(Session.objects.values_list("external_id", "memory_of")) == {"s1": "agent", "s2": ""}
