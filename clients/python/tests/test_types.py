"""What type checkers see: `make lint` runs mypy over this file. At run time there is little to test."""

from typing import TYPE_CHECKING

from memoryhub_client import AsyncMemoryHub, AsyncPages, MemoryHub, Pages
from memoryhub_client.models import Context, Fact
from memoryhub_client.testing import FakeMemoryHub

if TYPE_CHECKING:
    from typing_extensions import assert_type

    async def _types(hub: MemoryHub, later: AsyncMemoryHub) -> None:
        assert_type(hub.get_context(user_id="u"), Context)
        assert_type(await later.get_context(user_id="u"), Context)
        assert_type(hub.list_facts(user_id="u"), Pages[Fact])
        assert_type(later.list_facts(user_id="u"), AsyncPages[Fact])
        assert_type([one for one in hub.list_facts(user_id="u")], list[Fact])  # noqa: C416
        hub.get_context(user_id="u", no_such=1)  # type: ignore[call-arg]
        hub.get_context(user_id=1)  # type: ignore[arg-type]
        hub.add_fact(user_id="u", content="x", category="no such")  # type: ignore[arg-type]


def test_a_method_says_what_it_is() -> None:
    hub = FakeMemoryHub().client()
    assert hub.get_context.__name__ == "get_context"
    assert "inside a token budget" in (hub.get_context.__doc__ or "")
    assert "inside a token budget" in (MemoryHub.get_context.__doc__ or "")
