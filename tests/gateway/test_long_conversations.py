"""Conversations as applications have them: sent whole each time, over days, with answers given again."""

import json
from datetime import timedelta

from django.db.models import F

from memories.episodes import compaction
from memories.extraction import consolidation
from memories.invariants import check
from memories.models import Episode, Session, SessionQueue, Tenant, Turn, WorkingMemory
from tests import factories
from tests.factories import NOW
from tests.gateway.conftest import Client
from tests.gateway.test_gateway import asks, streams
from tests.llm.endpoint import Endpoint, says
from tests.model import Model

DAY = timedelta(days=1)


class Chat:
    """An application that shows a conversation and sends all that it shows."""

    def __init__(self, client: Client, endpoint: Endpoint) -> None:
        self.client, self.endpoint = client, endpoint
        self.shown: list[str] = []
        self.said: list[str] = []
        self.sessions: set[str] = set()

    def ask(self, question: str, reply: str) -> None:
        self.shown.append(question)
        self.said.append(question)
        self.again(reply)

    def again(self, reply: str) -> None:
        """Have the last message answered, as a stream every other time."""
        stream = len(self.said) % 4 == 1
        self.endpoint.responds(streams(reply[:3], reply[3:]) if stream else says(reply))
        answer = self.client.post(asks(*self.shown, **({"stream": True} if stream else {})), user="u1")
        assert answer.status_code == 200
        self.shown.append(reply)
        self.said.append(reply)
        self.sessions.add(answer.headers["x-memory-session"])


def a_night_passes() -> None:
    """The workers do what is due, and all of it was a day earlier."""
    for session in Session.objects.all():
        SessionQueue.objects.filter(due_at__isnull=False).update(due_at=NOW)
        consolidation.consolidate(session_id=session.pk, now=NOW)
        Session.objects.update(last_turn_at=F("last_turn_at") - DAY, created_at=F("created_at") - DAY)
        WorkingMemory.objects.update(due_at=NOW)
        compaction.compact(session_id=session.pk, now=NOW)
    Turn.objects.update(created_at=F("created_at") - DAY)


def test_what_a_request_shows_beyond_the_window_is_not_told_again(
    client: Client, endpoint: Endpoint, tenant: Tenant
) -> None:
    factories.set_numbers(tenant, window_rounds=1)
    chat = Chat(client, endpoint)
    for question in ("I grow tomatoes in Leiden", "It rains a lot", "What do I grow in Leiden?"):
        chat.ask(question, "I see.")
    assert json.dumps(endpoint.requests[-1]).count("I grow tomatoes in Leiden") == 1
    other = Chat(client, endpoint)
    other.ask("And what else do I grow in Leiden?", "Nothing.")
    assert "I grow tomatoes in Leiden" in json.dumps(endpoint.requests[-1])


def test_three_days_of_forty_messages_with_two_branches(
    client: Client, endpoint: Endpoint, tenant: Tenant, model: Model
) -> None:
    person = factories.end_user(tenant, external_id="u1")
    chat = Chat(client, endpoint)
    for number in range(20):
        chat.ask(f"Question {number} about Leiden", f"Reply {number} about Leiden")
        if number == 8:
            # The last answer is given again.
            chat.shown.pop()
            chat.again("Another reply about Leiden")
        if number == 15:
            # The person goes back two questions and asks another one.
            del chat.shown[-4:]
            chat.ask("Another question about Delft", "A reply about Delft")
        if number in (6, 13):
            a_night_passes()
    a_night_passes()
    assert len(chat.sessions) == 1
    turns = list(Turn.objects.order_by("number").values_list("content", "left_at"))
    assert [content for content, _ in turns] == chat.said
    assert len(chat.said) == 43
    assert [content for content, left_at in turns if left_at is None] == chat.shown
    assert {content for content, left_at in turns if left_at} == set(chat.said) - set(chat.shown)
    assert Episode.objects.filter(end_user=person).exists()
    assert check() == []


def test_a_first_answer_that_is_given_again(client: Client, endpoint: Endpoint) -> None:
    chat = Chat(client, endpoint)
    chat.ask("What can I see in Leiden on a rainy day?", "Museums")
    chat.shown.pop()
    chat.again("Canals")
    chat.ask("And on a sunny one?", "Parks")
    assert Session.objects.count() == 1
    assert list(Turn.objects.current().order_by("number").values_list("content", flat=True)) == chat.shown
    assert Turn.objects.get(content="Museums").left_at
