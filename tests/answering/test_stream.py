"""An answer while the model writes it: a sentence comes once it is certain, and nothing that went is told.

Gates hold the endpoint, so that what has come before one is opened came before the model had written the rest.
"""

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import LazySettings

from memories.answering import answer as answering
from memories.answering.answer import Answer, AnswerRequest, AnswerStatus, Event, Gathered, Looked, Told
from memories.curation.turns import redact_turn
from memories.llm.backends import openai as openai_backend
from memories.llm.backends import openai_client
from memories.models import DailySpending, EndUser, ModelUse, Turn
from tests import factories
from tests.factories import NOW
from tests.llm import endpoint as at
from tests.llm.endpoint import Endpoint, running
from tests.vectors import embed_all

pytestmark = pytest.mark.django_db
MAY, GHENT = "The user moved to Ghent in May.", "The user moved to Ghent."
START, END = '{"sentences": [', "]}"


@pytest.fixture
def person() -> EndUser:
    person = factories.end_user(external_id="u1")
    factories.session(person, [("user", "I moved to Ghent in May.")], session_id="s1")
    factories.session(person, [("user", "I moved to Ghent.")], session_id="s2")
    embed_all(person)
    return person


@pytest.fixture
def endpoint(settings: LazySettings) -> Iterator[Endpoint]:
    with running() as endpoint:
        settings.MEMORYHUB_LLM, settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY = "openai", endpoint.url, "k"
        yield endpoint
    openai_client.client_of.cache_clear()
    openai_backend._first_form.clear()
    openai_backend._stream_of.clear()


def said(text: str, *memories: int) -> str:
    return json.dumps({"text": text, "memories": memories})


def told(person: EndUser, **over: Any) -> Iterator[Event]:
    request = AnswerRequest("u1", "Where did I move to?", searches=1)
    return answering.told(tenant=person.tenant, request=request, now=NOW, **over)


def up_to_sentence(events: Iterator[Event]) -> Told:
    return next(one for one in events if isinstance(one, Told))


def last(events: Iterator[Event]) -> Answer:
    *_, found = events
    assert isinstance(found, Answer)
    return found


def test_a_sentence_comes_while_the_model_writes(person: EndUser, endpoint: Endpoint) -> None:
    gate = threading.Event()
    both = said(MAY, 1, 2)
    endpoint.responds(at.streams(START + both[:9], both[9:], gate, ", " + said("The user moved to Bruges.", 1), END))
    events = told(person)
    assert [type(next(events)) for _ in range(3)] == [type(None), Looked, Gathered]
    first = up_to_sentence(events)
    assert (first.text, [one.text for one in first.memories]) == (MAY, ["I moved to Ghent in May."])
    gate.set()
    rest = list(events)
    # What the memories do not say is never told.
    assert [type(one) for one in rest] == [Answer]
    found = last(iter(rest))
    assert (found.status, found.text, found.cut) == (AnswerStatus.ANSWERED, MAY, 1)
    assert (found.calls, found.prompt_tokens, found.completion_tokens) == (1, 12, 34)
    assert DailySpending.objects.get(tenant=person.tenant).tokens == 46
    asked = endpoint.requests[0]
    assert (asked["stream"], asked["stream_options"]) == (True, {"include_usage": True})


def test_the_last_event_is_the_plain_answer(person: EndUser, endpoint: Endpoint) -> None:
    whole = f"{START}{said(MAY, 1, 2)}, {said(GHENT, 1, 2)}{END}"
    endpoint.responds(at.streams(*whole), at.says(whole))
    streamed = last(told(person))
    request = AnswerRequest("u1", "Where did I move to?", searches=1)
    assert streamed == answering.answer(tenant=person.tenant, request=request, now=NOW)
    assert len(streamed.sentences) == 2
    assert "stream" not in endpoint.requests[1]


def test_nothing_more_of_who_was_restricted_meanwhile(person: EndUser, endpoint: Endpoint) -> None:
    gate, closed = threading.Event(), threading.Event()
    endpoint.responds(
        at.streams(START + said(MAY, 1, 2), gate, ", " + said(GHENT, 1, 2), at.sees_end(closed), ends=False)
    )
    events = told(person)
    assert up_to_sentence(events).text == MAY
    EndUser.objects.filter(pk=person.pk).update(restricted_at=NOW)
    gate.set()
    rest = list(events)
    assert [type(one) for one in rest] == [Answer]
    found = last(iter(rest))
    assert (found.status, found.sentences, found.evidence, found.restricted) == (AnswerStatus.UNKNOWN, [], [], True)
    # Nor does the model write any more of them.
    assert closed.wait(at.SLOWEST)


def test_what_is_redacted_between_two_sentences_is_not_told_again(person: EndUser, endpoint: Endpoint) -> None:
    gate = threading.Event()
    endpoint.responds(at.streams(START + said(MAY, 1, 2), gate, ", " + said(f"{MAY[:-1]}!", 1, 2), END))
    events = told(person)
    assert up_to_sentence(events).text == MAY
    turn = Turn.objects.get(end_user=person, content__contains="in May")
    redact_turn(turn_id=turn.pk, tenant=person.tenant, actor=factories.COMMAND, now=NOW)
    gate.set()
    rest = list(events)
    assert [type(one) for one in rest] == [Answer]
    found = last(iter(rest))
    assert (list(found.sentences), [one.text for one in found.evidence]) == ([], ["I moved to Ghent."])


def test_who_goes_away_ends_the_call_and_what_was_written_counts(person: EndUser, endpoint: Endpoint) -> None:
    closed = threading.Event()
    endpoint.responds(at.streams(START + said(MAY, 1, 2), at.sees_end(closed), ends=False))
    events = told(person)
    up_to_sentence(events)
    assert not closed.is_set()
    events.close()  # type: ignore[attr-defined]
    assert closed.wait(at.SLOWEST)
    noted = ModelUse.objects.get(tenant=person.tenant, purpose="answers")
    assert noted.calls == 1
    assert noted.prompt_tokens > noted.completion_tokens > 10
    # The next one may ask.
    assert answering._running._value == answering.AT_ONCE


def test_a_silent_model_is_not_waited_for_by_nobody(person: EndUser, endpoint: Endpoint) -> None:
    left, closed = threading.Event(), threading.Event()
    endpoint.responds(at.streams("{", lambda _: left.set(), at.sees_end(closed), ends=False))
    assert last(told(person, has_left=left.is_set)).failure == "model_timeout"
    assert closed.wait(at.SLOWEST)
    left.clear()
    endpoint.responds(at.streams(START + said(MAY, 1, 2), END))
    assert last(told(person, has_left=left.is_set)).status == AnswerStatus.ANSWERED


def test_tokens_are_counted_where_nobody_reports_them(person: EndUser, endpoint: Endpoint) -> None:
    endpoint.responds(at.streams(START + said(MAY, 1, 2), END, usage=False))
    found = last(told(person))
    assert found.prompt_tokens > found.completion_tokens > 10
    assert DailySpending.objects.get(tenant=person.tenant).tokens == found.prompt_tokens + found.completion_tokens


@pytest.mark.parametrize(
    ("broken", "failure"),
    [({"ends": False}, "model_answer_invalid"), ({"finish_reason": "length"}, "model_answer_truncated")],
)
def test_what_was_told_stays_where_the_call_fails_later(
    person: EndUser, endpoint: Endpoint, broken: dict[str, Any], failure: str
) -> None:
    endpoint.responds(at.streams(START + said(MAY, 1, 2) + ", {", **broken))
    found = last(told(person))
    assert (found.status, found.text, found.failure) == (AnswerStatus.ANSWERED, MAY, failure)
    endpoint.responds(at.streams(START + "{", **broken))
    bare = last(told(person))
    assert (bare.status, bare.sentences, bare.failure) == (AnswerStatus.EVIDENCE, (), failure)


def test_an_endpoint_without_streams_tells_all_at_the_end(person: EndUser, endpoint: Endpoint) -> None:
    whole = START + said(MAY, 1, 2) + END
    endpoint.responds(at.says(whole))
    assert last(told(person)).text == MAY
    endpoint.requests.clear()
    endpoint.responds(
        at.fails(400, "Unknown field: stream_options"), at.fails(400, "no streaming here"), at.says(whole)
    )
    assert last(told(person)).text == MAY
    assert last(told(person)).text == MAY
    # It is asked as it likes it from then on.
    asked = [(one.get("stream"), "stream_options" in one) for one in endpoint.requests]
    assert asked == [(True, True), (True, False), (None, False), (None, False)]
