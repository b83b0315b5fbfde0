"""A secret that is posted is nowhere afterwards, and everything beside it is kept as it was."""

import logging
from typing import Any

import pytest

from memories.capture import ingest
from memories.capture.ingest import Conversation, PostedMessage, Receipt
from memories.models import Tenant, Turn
from tests.curation.marks import places_of

pytestmark = pytest.mark.django_db
SECRET = "Tr0ub4dor-9x"
PHRASES = [f"My password is {SECRET}, and I am allergic to penicillin.", f"我的密码是{SECRET}，我对青霉素过敏。"]
KINDS = ("content", "parts", "metadata", "metadata of depth", "tool calls", "tool call id", "name")


def post(tenant: Tenant, *messages: PostedMessage) -> Receipt:
    return ingest.store_turns(tenant=tenant, user_id="u1", session_id="s1", agent_id="", messages=messages)


def message_with(text: str, kind: str) -> PostedMessage:
    given: dict[str, dict[str, Any]] = {
        "content": {"content": text},
        "parts": {"content": text, "parts": [{"type": "text", "text": text}]},
        "metadata": {"metadata": {"note": text}},
        "metadata of depth": {"metadata": {"a": [{"b": {"c": text}}]}},
        "tool calls": {"tool_calls": [{"function": {"name": "login", "arguments": text}}]},
        "tool call id": {"tool_call_id": text},
        "name": {"name": text},
    }
    return PostedMessage(**{"role": "assistant", "content": "Noted", **given[kind]})


@pytest.mark.parametrize("kind", KINDS)
def test_a_password_is_in_no_column(tenant: Tenant, kind: str) -> None:
    receipt = post(tenant, message_with(" ".join(PHRASES), kind))
    assert receipt.redactions == 2
    assert places_of(SECRET) == []
    assert "memories_turn." in "".join(places_of("redacted:password"))
    # The control: what is no secret is found.
    assert places_of("penicillin")
    assert places_of("青霉素")


@pytest.mark.parametrize("text", PHRASES)
def test_neighbours_stay(tenant: Tenant, text: str) -> None:
    post(tenant, message_with(text, "content"))
    assert Turn.objects.get().content == text.replace(SECRET, "[redacted:password]")


@pytest.mark.parametrize("kind", ["content", "parts"])
@pytest.mark.parametrize("text", PHRASES)
def test_a_secret_posted_again_under_its_id_is_a_duplicate(tenant: Tenant, kind: str, text: str) -> None:
    said = PostedMessage(**{**vars(message_with(text, kind)), "external_id": "m1"})
    first, again = post(tenant, said), post(tenant, said)
    assert (first.accepted, again.accepted, again.duplicates) == (1, 0, 1)


def test_bulk_cuts_too(tenant: Tenant) -> None:
    talks = [Conversation("u1", f"s{number}", "", [PostedMessage("user", text)]) for number, text in enumerate(PHRASES)]
    receipts = ingest.store_conversations(tenant=tenant, conversations=talks)
    assert [receipt.redactions for receipt in receipts] == [1, 1]
    assert places_of(SECRET) == []


def test_logs_hold_neither(tenant: Tenant, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    logging.getLogger("memories").info("the control")
    post(tenant, message_with(PHRASES[0], "content"))
    assert "the control" in caplog.text
    assert SECRET not in caplog.text


def test_tokens_are_those_of_what_is_kept(tenant: Tenant) -> None:
    long = "My password is " + "Ab3-" * 60
    post(tenant, PostedMessage("user", long))
    assert 0 < Turn.objects.get().token_count < 20


def test_a_name_of_marks_still_fits(tenant: Tenant) -> None:
    name = "pin: 4711, " * 22
    assert post(tenant, PostedMessage("user", "Hi", name=name)).redactions == 22
    assert len(Turn.objects.get().name) == 255
