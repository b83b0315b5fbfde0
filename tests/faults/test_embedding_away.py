"""The embedding endpoint away while turns come in, and another model put in its place while searches go on."""

import itertools
import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

import pytest
from django.conf import LazySettings
from django.core.management import call_command

from memories.llm import embeddings
from memories.llm.backends import openai_client
from memories.management.commands import reembed
from memories.models import EndUser, Turn, TurnVector
from tests import factories
from tests.faults.conftest import Note
from tests.faults.embedder import Answered, Background, Visitor, embedder
from tests.faults.workers import wait_until
from tests.llm import endpoint as at
from tests.llm.endpoint import Handler, running
from tests.ports import free_port

pytestmark = pytest.mark.django_db(transaction=True)
# A search that meets the fault first waits 2 s; what else it does takes a moment.
LONGEST_SECONDS = 3.0
AWAY = [pytest.param(4.0), pytest.param(60.0, marks=pytest.mark.soak)]
FIRST, SECOND = "openai:first", "openai:second"
DIMENSIONS = {"first": 8, "second": 12}
# What each model finds nearest to a query without a word in common with either.
NEAREST = {FIRST: "apple", SECOND: "pear"}


def responds(handler: Handler) -> None:
    """The first model sees queries where apples are and the second where pears are; no vector fits the other's."""
    model = handler.asked["model"]
    near = NEAREST[f"openai:{model}"]
    rows = []
    for index, text in enumerate(handler.asked["input"]):
        row = [0.0] * DIMENSIONS[model]
        row[0 if text.startswith(("quux", near)) else 1] = 1.0
        row[2 + len(text) % 3] = 0.1
        rows.append({"object": "embedding", "index": index, "embedding": row})
    at.sends(json.dumps({"object": "list", "data": rows, "model": model, "usage": {}}).encode())(handler)


@pytest.fixture
def port(settings: LazySettings) -> Iterator[int]:
    """Where the first model is looked for."""
    port = free_port()
    settings.MEMORYHUB_EMBEDDINGS = "openai"
    settings.MEMORYHUB_EMBEDDING_MODEL = "first"
    settings.MEMORYHUB_EMBEDDING_TIMEOUT = 3.0
    settings.MEMORYHUB_EMBEDDING_BASE_URL = f"http://127.0.0.1:{port}/v1"
    embeddings._queries.clear()
    yield port
    openai_client.client_of.cache_clear()


@pytest.fixture
def visitor() -> Visitor:
    tenant = factories.tenant()
    factories.end_user(tenant, external_id="u1")
    return Visitor(factories.api_key(tenant)[1])


@pytest.mark.parametrize("seconds", AWAY)
@pytest.mark.parametrize("how", ["refused", "hangs"])
def test_the_endpoint_away(port: int, visitor: Visitor, note: Note, how: str, seconds: float) -> None:
    background = embedder()
    with running(port) as endpoint:
        endpoint.responds(responds)
        visitor.post("apple")
        wait_until(lambda: visitor.pending() == 0)
    if how == "hangs":
        with running(port) as endpoint:
            endpoint.responds(at.hangs)
            _live(visitor, seconds)
    else:
        _live(visitor, seconds)
    models = Counter(one.model for one in visitor.answers if one.what == "/search")
    assert models == {None: models.total()}
    assert visitor.pending() == Turn.objects.count() - 1
    with running(port) as endpoint:
        endpoint.responds(responds)
        # The pause that was noted last may take 30 s.
        healed = wait_until(lambda: visitor.pending() == 0, within=90)
    background.end()
    statuses = Counter((one.what, one.status) for one in visitor.answers)
    assert {status for _, status in statuses} == {200, 202}
    slowest = max(one.seconds for one in visitor.answers)
    note(
        f"embeddings away {seconds:g} s: {how}",
        healed,
        f"to catch up; {statuses.total()} calls, slowest {slowest:.2f} s",
    )
    assert slowest < LONGEST_SECONDS
    times = Counter(TurnVector.objects.values_list("turn", flat=True))
    assert times == dict.fromkeys(Turn.objects.values_list("pk", flat=True), 1)


def _live(visitor: Visitor, seconds: float) -> None:
    """Post, search and ask for contexts for so long; each by what was said last."""
    end = time.monotonic() + seconds
    for number in itertools.count():
        visitor.post(f"apple number {number}")
        visitor.search(f"quux {number}?")
        visitor.context(f"what of number {number}?")
        if time.monotonic() > end:
            return
        # The pace of a talk.
        time.sleep(0.05)


def _search_on(visitor: Visitor, numbers: Iterator[int]) -> None:
    """Another question each time: none has its vector from before."""
    visitor.search(f"quux {next(numbers)}")


def mixed(answers: Sequence[Answered]) -> list[Answered]:
    """Searches whose best turn is not the one that the model they name finds nearest."""
    return [one for one in answers if one.model not in NEAREST or not one.best.startswith(NEAREST[one.model])]


@pytest.mark.parametrize("turns", [100, pytest.param(3_000, marks=pytest.mark.soak)])
def test_another_model_under_load(
    port: int, settings: LazySettings, monkeypatch: pytest.MonkeyPatch, visitor: Visitor, turns: int
) -> None:
    settings.MEMORYHUB_EMBEDDING_QUERY_TIMEOUT = 20
    monkeypatch.setattr(reembed, "GRACE_SECONDS", 1.0)
    person = EndUser.objects.get()
    said = [("user", f"{'apple' if number % 2 else 'pear'} {'x' * (number % 7)}") for number in range(turns)]
    factories.session(person, said, session_id="s0")
    with running(port) as endpoint:
        endpoint.responds(responds)
        background = embedder()
        wait_until(lambda: visitor.pending() == 0)
        searchers, writer = [Visitor(visitor.key) for _ in range(2)], Visitor(visitor.key)
        numbers = itertools.count()
        load = [Background(partial(_search_on, one, numbers)) for one in searchers]
        load.append(Background(lambda: writer.post(f"{'apple' if next(numbers) % 2 else 'pear'} new")))
        wait_until(lambda: all(one.answers for one in searchers))
        settings.MEMORYHUB_EMBEDDING_MODEL = "second"
        call_command("reembed", verbosity=0)
        wait_until(lambda: all(one.answers[-1].model == SECOND for one in searchers))
        for one in load:
            one.end()
        wait_until(lambda: visitor.pending() == 0)
        background.end()
    searches = [answer for one in searchers for answer in one.answers]
    assert {answer.status for answer in [*searches, *writer.answers]} == {200, 202}
    assert {answer.model for answer in searches} == {FIRST, SECOND}
    assert mixed(searches) == []
    assert TurnVector.objects.filter(space__model=SECOND).count() == Turn.objects.count()
    assert not TurnVector.objects.filter(space__model=FIRST).exists()


def test_mixed_spaces_would_show(port: int, visitor: Visitor) -> None:
    """The positive control: the other model's vectors in the rows of the serving space."""
    person = EndUser.objects.get()
    factories.session(person, [("user", "apple"), ("user", "pear")] * 10, session_id="s0")
    with running(port) as endpoint:
        endpoint.responds(responds)
        background = embedder()
        wait_until(lambda: visitor.pending() == 0)
        background.end()
        fruit = {row.turn.content: row.vector for row in TurnVector.objects.select_related("turn")}
        for row in TurnVector.objects.select_related("turn"):
            row.vector = fruit["pear" if row.turn.content == "apple" else "apple"]
            row.save(update_fields=["vector"])
        visitor.search("quux")
    assert visitor.answers[-1].model == FIRST
    assert len(mixed(visitor.answers)) == 1
