"""A question's vector at an endpoint that hangs, fails or is slow: it never holds a request up for long."""

import time
from collections.abc import Callable, Iterator

import pytest
from django.conf import LazySettings

from memories.embedding.deadlines import Pause
from memories.exceptions import EmbeddingTimeout
from memories.llm import embeddings
from memories.llm.backends import openai_client
from memories.models import EmbeddingSpace
from memories.retrieval import prepared_query
from memories.retrieval.prepared_query import prepare
from tests import vectors
from tests.database import at_once, statements
from tests.embedding.test_deadlines import Clock
from tests.llm import endpoint as at
from tests.llm.endpoint import Endpoint, Handler, Response, running
from tests.llm.vectors_endpoint import DIMENSIONS, altered, refuses, sends_vectors

TIMEOUT = 0.5
# What a busy machine may add to a wait; well below the 10 s after which a hanging answer ends by itself.
SLACK = 2.0
LONG = "We talked about many things last week and I forget most of them. " * 6 + "Where do I live? Who is Ana? When?"
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def endpoint(settings: LazySettings) -> Iterator[Endpoint]:
    settings.MEMORYHUB_EMBEDDINGS = "openai"
    settings.MEMORYHUB_EMBEDDING_MODEL = "m"
    settings.MEMORYHUB_EMBEDDING_QUERY_TIMEOUT = TIMEOUT
    embeddings._queries.clear()
    with running() as endpoint:
        settings.MEMORYHUB_EMBEDDING_BASE_URL = endpoint.url
        endpoint.responds(sends_vectors())
        yield endpoint
    openai_client.client_of.cache_clear()


@pytest.fixture
def clock(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Of the pause after a failed question; the space serves, and no embedder has found anything wrong with it."""
    clock = Clock()
    space = vectors.space("openai:m", DIMENSIONS)
    monkeypatch.setitem(prepared_query._pauses, space.pk, Pause(clock))
    return clock


def waited(text: str) -> tuple[float, bool]:
    """Seconds, and whether it has a vector."""
    begun = time.monotonic()
    question = prepare(text)
    return time.monotonic() - begun, question.embedding_model is not None


def test_one_call_for_all_parts_of_a_question_and_none_for_the_same_again(endpoint: Endpoint, clock: Clock) -> None:
    question = prepare(LONG)
    assert len(question.queries) == 4
    assert all(query.vector is not None for query in question.queries)
    assert [len(request["input"]) for request in endpoint.requests] == [4]
    assert prepare("Who is Ana?").embedding_model == "openai:m"
    assert len(endpoint.requests) == 1


def test_an_endpoint_that_hangs_costs_one_wait_and_then_nothing(endpoint: Endpoint, clock: Clock) -> None:
    endpoint.responds(at.hangs)
    seconds, has_vector = waited(LONG)
    assert TIMEOUT * 0.9 < seconds < TIMEOUT + SLACK
    assert not has_vector
    assert not any(has_vector for _, has_vector in [waited(f"and {n}") for n in range(20)])
    assert len(endpoint.requests) == 1
    endpoint.responds(sends_vectors())
    assert not waited("still left alone")[1]
    clock.now = 1.0
    assert waited("again")[1]
    assert waited("and again")[1]


def test_many_at_once_wait_together_not_in_turn(
    endpoint: Endpoint, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.responds(at.hangs)
    begun = time.monotonic()
    outcomes = at_once(12, lambda number: waited(f"question {number}")[1])
    assert outcomes == [False] * 12
    assert time.monotonic() - begun < 6 * TIMEOUT + SLACK
    # On a busy machine a wait can end before the endpoint has heard of the question.
    assert len(endpoint.requests) <= 12
    # All of them count as one failure: after the pause of a first failure one may ask, and it finds the same.
    clock.now = 1.0
    asked: list[str] = []
    ask_in_time = prepared_query._in_time

    def counted(call: Callable[[], list[embeddings.Vectors]], space: EmbeddingSpace) -> list[embeddings.Vectors]:
        asked.append(space.model)
        return ask_in_time(call, space)

    monkeypatch.setattr(prepared_query, "_in_time", counted)
    assert at_once(12, lambda number: waited(f"later {number}")[1]) == [False] * 12
    assert len(asked) == 1


def test_what_is_known_is_used_while_the_endpoint_is_left_alone(endpoint: Endpoint, clock: Clock) -> None:
    assert waited("known")[1]
    endpoint.responds(at.fails(500))
    assert not waited("unknown")[1]
    assert waited("known")[1]
    EmbeddingSpace.objects.update(dimensions=DIMENSIONS + 1)
    assert not waited("known")[1]


def test_a_stated_wait_is_kept(endpoint: Endpoint, clock: Clock) -> None:
    endpoint.responds(at.fails(429, Retry_After="9"), sends_vectors())
    assert not waited("a")[1]
    clock.now = 8.9
    assert not waited("a")[1]
    clock.now = 9.0
    assert waited("a")[1]


@pytest.mark.parametrize(("respond", "others"), [(refuses("bad"), True), (altered(embedding=[1.0]), False)])
def test_a_question_that_is_refused_says_nothing_about_the_others(
    endpoint: Endpoint, clock: Clock, respond: Response, others: bool
) -> None:
    endpoint.responds(respond, sends_vectors())
    assert not waited("a bad one")[1]
    assert waited("a good one")[1] is others


def test_a_question_writes_nothing_and_does_not_pause_the_embedders(endpoint: Endpoint, clock: Clock) -> None:
    endpoint.responds(at.fails(500))
    made = statements(lambda: prepare("anything"))
    assert [one.split()[0] for one in made] == ["SELECT"]
    space = EmbeddingSpace.objects.get()
    assert (space.failures, space.failure, space.paused_until) == (0, "", None)
    assert len(endpoint.requests) == 1


def test_the_questions_time_is_not_that_of_the_embedders(endpoint: Endpoint, settings: LazySettings) -> None:
    def late(handler: Handler) -> None:
        handler.endpoint.ended.wait(2 * TIMEOUT)
        sends_vectors()(handler)

    endpoint.responds(late)
    assert len(embeddings.embed(["a slow one"])) == 1
    with pytest.raises(EmbeddingTimeout):
        embeddings.embed_queries(["a slow one"], model=embeddings.current_model())
