"""A reranker of one's own: what it is shown, what its scores change, and that it can spoil nothing."""

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from django.conf import LazySettings

from memories.context import context, parts
from memories.context.context import ContextRequest
from memories.embedding import deadlines
from memories.llm.reranking import Candidate
from memories.models import EndUser
from memories.retrieval import reranking
from memories.retrieval import search as retrieval
from memories.retrieval.search import SearchRequest
from tests import factories
from tests.embedding.test_deadlines import Clock
from tests.factories import NOW

pytestmark = pytest.mark.django_db
Scores = Callable[[str, Sequence[Candidate]], Any]
shown: list[Candidate] = []
_scores: list[Scores] = []


def foreign(query: str, candidates: Sequence[Candidate]) -> Iterable[float]:
    """What the setting names; each test says what it does."""
    shown[:] = candidates
    return _scores[0](query, candidates)  # type: ignore[no-any-return]


def longest_first(_query: str, candidates: Sequence[Candidate]) -> list[float]:
    return [len(one.text) for one in candidates]


@pytest.fixture(autouse=True)
def clock(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    settings.MEMORYHUB_RERANKER = f"{__name__}.foreign"
    monkeypatch.setattr(reranking, "_pause", deadlines.Pause(clock))
    install(longest_first)
    shown.clear()
    return clock


def install(scores: Scores) -> None:
    _scores[:] = [scores]


@pytest.fixture
def person() -> EndUser:
    """Sixty turns and facts about cats, each longer than the one before."""
    person = factories.end_user(external_id="u1")
    factories.session(person, [("user", "cat " + "very " * n) for n in range(60)], session_id="s")
    for n in range(60):
        factories.fact(person, f"cat {'really ' * n}{n}", category="knowledge")
    return person


def search(person: EndUser, **over: Any) -> list[retrieval.Finding]:
    asked = SearchRequest(user_id="u1", query="cat", **{"kinds": ("turn",), "limit": 5, **over})
    return retrieval.search(tenant=person.tenant, search=asked, now=NOW).results


def lines(person: EndUser) -> list[dict[str, Any]]:
    request = ContextRequest("u1", query="cat", max_tokens=8_000, include=parts.DEFAULT_INCLUDE)
    return context.build(tenant=person.tenant, request=request, now=NOW).items


def test_its_scores_are_the_order_and_a_part(person: EndUser, settings: LazySettings) -> None:
    found = search(person)
    lengths = [len(one.text) for one in found]
    assert [one.score_parts["rerank"] for one in found] == lengths == sorted(lengths, reverse=True)
    assert len(shown) == reranking.CANDIDATES
    assert {one.kind for one in shown} == {"turn"}
    settings.MEMORYHUB_RERANKER = ""
    own = search(person)
    assert [one.id for one in own] != [one.id for one in found]
    assert "rerank" not in own[0].score_parts
    scores = [one.score for one in own]
    assert scores == sorted(scores, reverse=True)


def test_beyond_those_it_is_shown_the_own_order_goes_on(person: EndUser) -> None:
    found = search(person, kinds=("turn", "fact"), limit=100)
    assert [("rerank" in one.score_parts) for one in found] == [True] * 50 + [False] * 50
    rest = [one.score for one in found[50:]]
    assert rest == sorted(rest, reverse=True)
    search(person, kinds=("turn", "fact"))
    assert [sum(one.kind == kind for one in shown) for kind in ("turn", "fact")] == [25, 25]


def test_a_context_takes_facts_and_turns_in_its_order(person: EndUser, settings: LazySettings) -> None:
    items = lines(person)
    facts = [item["score_parts"]["rerank"] for item in items if item["kind"] == "fact"]
    assert facts == sorted(facts, reverse=True)
    assert len(facts) == 20
    hits = [
        item["score_parts"]["rerank"] for item in items if item["kind"] == "turn" and "rerank" in item["score_parts"]
    ]
    assert len(hits) >= 10
    settings.MEMORYHUB_RERANKER = ""
    assert not any("rerank" in item["score_parts"] for item in lines(person))


def raises(error: BaseException) -> Scores:
    def scores(_query: str, _candidates: Sequence[Candidate]) -> list[float]:
        raise error

    return scores


def mid_way(_query: str, _candidates: Sequence[Candidate]) -> Iterable[float]:
    yield 1.0
    raise KeyError("private cat")


FAULTS: dict[str, Scores] = {
    "raises": raises(RuntimeError("private cat")),
    "raises at its end": mid_way,
    "wants to end the process": raises(SystemExit(1)),
    "runs out of its own time": raises(TimeoutError("private cat")),
    "too few": lambda _query, candidates: [1.0] * (len(candidates) - 1),
    "too many": lambda _query, candidates: [1.0] * (len(candidates) + 1),
    "not a number": lambda _query, candidates: [float("nan")] * len(candidates),
    "infinite": lambda _query, candidates: [float("inf")] * len(candidates),
    "words": lambda _query, candidates: ["private cat"] * len(candidates),
    "nothing": lambda _query, _candidates: None,
}


def test_whatever_it_does_the_results_stay(
    person: EndUser, settings: LazySettings, caplog: pytest.LogCaptureFixture, clock: Clock
) -> None:
    found = {}
    for name, fault in FAULTS.items():
        install(fault)
        shown.clear()
        caplog.clear()
        # The pause after the last fault is over.
        clock.now += 100
        with caplog.at_level(logging.WARNING):
            found[name] = search(person)
        assert len(shown) == reranking.CANDIDATES, name
        assert "own order" in caplog.text, name
        assert "cat" not in caplog.text, name
    settings.MEMORYHUB_RERANKER = ""
    assert found == dict.fromkeys(FAULTS, search(person))


def test_one_that_never_ends_is_left_alone_for_a_while(person: EndUser, settings: LazySettings, clock: Clock) -> None:
    settings.MEMORYHUB_RERANK_TIMEOUT = 0.1
    gate = threading.Event()
    install(lambda _query, _candidates: gate.wait(30) and [])
    assert "rerank" not in search(person)[0].score_parts
    install(longest_first)
    assert "rerank" not in search(person)[0].score_parts
    clock.now = 1.0
    assert "rerank" in search(person)[0].score_parts
    gate.set()


def test_it_is_not_asked_about_nothing(person: EndUser) -> None:
    install(raises(AssertionError()))
    assert search(person, filters=retrieval.SearchFilters(session_id="another")) == []
    assert shown == []
