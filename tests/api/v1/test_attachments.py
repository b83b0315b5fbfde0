"""Attachments end to end: posted with a turn, read in a process apart, searched, listed, deleted."""

from base64 import b64encode
from typing import Any

import pytest

from memories.attachments import reading
from memories.db import binary_rows
from memories.models import Attachment, AttachmentState, EndUser, Fact, Passage, Turn
from memories.retrieval import document_search
from tests import factories
from tests.api.conftest import Hub
from tests.database import undone
from tests.vectors import embed_all

MARKDOWN = """# Bakery

Intro.

## Prices

A rye loaf costs 6.40 euros from May on.

## Keys

The password is hunter2secret99 for the oven.
"""
HTML = (
    "<html><head><title>Lease</title></head><body><h1>Term</h1><p>The lease ends in June 2031.</p><script>no()</script>"
)


def posted(hub: Hub, *files: dict[str, Any], **over: Any) -> Any:
    message = {"role": "user", "content": "Here are the files", "attachments": list(files), **over}
    return hub.client.post("/turns", {"user_id": "u1", "session_id": "s1", "messages": [message]})


def markdown(text: str = MARKDOWN, **over: Any) -> dict[str, Any]:
    return {"name": "prices.md", "media_type": "text/markdown", "text": text, **over}


def searched(hub: Hub, query: str, **over: Any) -> Any:
    return hub.client.post("/search", {"user_id": "u1", "query": query, "kinds": ["document"], **over}).json()[
        "results"
    ]


def read_all() -> None:
    assert reading.run_slice(now=factories.NOW, seconds=60) is False


def test_a_document_is_read_found_and_goes_with_its_turn(hub: Hub) -> None:
    html = {"name": "lease.html", "media_type": "text/html; charset=utf-8", "data": b64encode(HTML.encode()).decode()}
    answer = posted(hub, markdown(), html)
    assert answer.status_code == 202
    turn = answer.json()["turns"][0]
    waiting = hub.client.call("GET", "/attachments", query={"user_id": "u1"}).json()["results"]
    assert {one["id"] for one in waiting} == set(turn["attachments"])
    assert {(one["state"], one["turn_id"], one["session_id"]) for one in waiting} == {("pending", turn["id"], "s1")}
    read_all()
    # The file is gone, its text is there.
    assert set(Attachment.objects.values_list("state", "content")) == {("read", None)}
    embed_all(Turn.objects.get().end_user)
    [best, *_] = searched(hub, "How much is the rye bread?")
    assert (best["text"], best["name"], best["place"]) == (
        "## Prices\n\nA rye loaf costs 6.40 euros from May on.", "prices.md", "Bakery › Prices"
    )  # fmt: skip
    assert (best["author"], best["session_id"], best["turn_numbers"]) == ("application", "s1", [1])
    assert best["attachment_id"] in turn["attachments"]
    [lease] = searched(hub, "When does the lease end?", limit=1)
    assert (lease["text"], lease["place"]) == ("Term\n\nThe lease ends in June 2031.", "Lease › Term")
    # Of a secret nothing is kept, and a document is nobody's word.
    assert "hunter2secret99" not in "".join(Passage.objects.values_list("content", flat=True))
    assert not Fact.objects.exists()
    passages = hub.client.call("GET", f"/attachments/{best['attachment_id']}/passages").json()["results"]
    assert [one["number"] for one in passages] == [1, 2, 3]
    assert hub.client.call("DELETE", f"/attachments/{best['attachment_id']}").status_code == 204
    assert {one["name"] for one in searched(hub, "rye bread lease")} == {"lease.html"}
    assert hub.client.call("DELETE", f"/turns/{turn['id']}").status_code == 204
    assert not Attachment.objects.exists()
    assert not Passage.objects.exists()
    assert searched(hub, "rye bread lease") == []


def test_what_is_not_read_is_refused_with_its_reason_and_the_turn_is_stored(hub: Hub) -> None:
    factories.set_numbers(hub.tenant, attachment_kilobytes=10)
    sheet = {"name": "a.xlsx", "media_type": "application/vnd.ms-excel", "data": "AAAA"}
    assert posted(hub, sheet, markdown("x" * 11_000), content="").status_code == 202
    rows = hub.client.call("GET", "/attachments", query={"user_id": "u1", "state": "refused"}).json()["results"]
    assert {(one["name"], one["reason"]) for one in rows} == {("a.xlsx", "unsupported"), ("prices.md", "too_large")}
    assert all(one["detail"] for one in rows)
    assert set(Attachment.objects.values_list("content", flat=True)) == {None}


def test_an_empty_file_loses_no_message(hub: Hub) -> None:
    assert posted(hub, markdown(""), {"name": "a.pdf", "media_type": "application/pdf", "data": ""}).status_code == 202
    read_all()
    assert set(Attachment.objects.values_list("state", "reason")) == {("failed", "no_text"), ("failed", "damaged")}
    assert Turn.objects.get().content == "Here are the files"


@pytest.mark.parametrize(
    ("file", "pointer"),
    [
        ({"media_type": "text/html"}, "data"),
        ({"media_type": "text/html", "data": "AAAA", "text": "x"}, "data"),
        ({"media_type": "application/pdf", "text": "x"}, "text"),
        ({"media_type": "application/pdf", "data": "not base64!"}, "data"),
        ({"data": "AAAA"}, "media_type"),
        ({"media_type": "text/plain", "url": "https://example.com/a.txt"}, "url"),
    ],
)
def test_a_file_that_says_nothing_is_told_with_its_place(hub: Hub, file: dict[str, Any], pointer: str) -> None:
    answer = posted(hub, file)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["pointer"] == f"/messages/0/attachments/0/{pointer}"
    assert not Turn.objects.exists()


def test_a_message_that_comes_again_brings_no_second_file(hub: Hub) -> None:
    for _ in range(2):
        answer = posted(hub, markdown(), external_id="m1")
    assert "attachments" not in answer.json()["turns"][0]
    assert Attachment.objects.count() == 1
    many = [markdown("x")] * 51
    refused = posted(hub, *many)
    assert refused.status_code == 400


def test_a_conversation_of_one_agent_alone_shows_its_documents_to_that_agent(hub: Hub) -> None:
    hub.tenant.memory_of = "agent"
    hub.tenant.save()
    person = factories.end_user(hub.tenant, external_id="u1")
    turn = factories.session(person, agent_id="sales", memory_of="agent").turns.get()
    factories.attachment(turn, "A rye loaf costs 6.40 euros.")
    assert searched(hub, "rye loaf") == []
    assert len(searched(hub, "rye loaf", filters={"agent_id": "sales"})) == 1
    assert searched(hub, "rye loaf", filters={"agent_id": "other"}) == []


def test_documents_of_hidden_turns_and_of_branches_that_were_left_are_not_found(hub: Hub) -> None:
    person = factories.end_user(hub.tenant, external_id="u1")
    turn = factories.session(person).turns.get()
    factories.attachment(turn, "A rye loaf costs 6.40 euros.")
    assert len(searched(hub, "rye loaf")) == 1
    for changed in ({"left_at": factories.NOW}, {"metadata": {"hide_from_ui": True}}, {"role": "system"}):
        with undone():
            Turn.objects.filter(pk=turn.pk).update(**changed)
            assert searched(hub, "rye loaf") == [], changed
    assert len(searched(hub, "rye loaf")) == 1


def test_a_search_reads_the_newest_passages_alone_and_their_vectors(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody may have a million of them."""
    monkeypatch.setattr(document_search, "NEWEST", 3)
    person = factories.end_user(hub.tenant, external_id="u1")
    for number in range(3):
        turn = factories.session(person, session_id=f"s{number}").turns.get()
        factories.attachment(turn, f"The loaf {number} is of rye.", f"The cake {number} is of nuts.")
    embed_all(person)
    fetched = binary_rows.fetched
    counts: list[int] = []

    def counted(*given: Any) -> Any:
        rows = list(fetched(*given))
        counts.append(len(rows))
        return rows

    monkeypatch.setattr(binary_rows, "fetched", counted)
    first = searched(hub, "Which loaf is of rye?")
    assert len(first) == 3
    assert max(counts) == 3
    assert len(counts) <= 4
    counts.clear()
    # The index is kept while nothing changes.
    assert searched(hub, "Which loaf is of rye?") == first
    assert max(counts, default=0) <= 1


def test_whoever_lost_the_lease_stores_nothing(hub: Hub) -> None:
    person = factories.end_user(hub.tenant, external_id="u1")
    row = factories.attachment(factories.session(person).turns.get())
    work = reading.claim(row.pk)
    assert work
    assert reading.claim(row.pk) is None
    Attachment.objects.filter(pk=row.pk).delete()
    assert reading.read(work, now=factories.NOW) is False
    assert not Passage.objects.exists()
    again = factories.attachment(factories.session(person, session_id="s2").turns.get())
    assert (work := reading.claim(again.pk))
    assert reading.read(work, now=factories.NOW) is True
    again.refresh_from_db()
    assert (again.state, again.content) == (AttachmentState.READ, None)


def test_files_of_a_restricted_person_wait(hub: Hub) -> None:
    person = factories.end_user(hub.tenant, external_id="u1")
    factories.attachment(factories.session(person).turns.get())
    EndUser.objects.update(restricted_at=factories.NOW)
    read_all()
    assert Attachment.objects.get().state == "pending"
