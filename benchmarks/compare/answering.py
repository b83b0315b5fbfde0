"""What a question gets: what was said about it, little when it is about something else, few tokens, and requests to a
model whose head stays as it was: providers bill such a head at a fraction."""

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

from django.db.models import F

from benchmarks import load, rows
from benchmarks.compare.figures import Row
from benchmarks.compare.ground import in_parts
from benchmarks.compare.products import Hub, Peer, Product
from benchmarks.compare.searching import Course
from benchmarks.compare.shared_sets import JUDGED_BY, SharedSets, asked_about
from evals import metrics
from evals.corpora import Corpus, Unit
from tests.clients_suite import upstream

LIMIT, BELIEFS, POSTED, ASKED = 50, 18, 100, 20
# So long a product has for the lives of one set.
SECONDS = 900.0
# About the world, and nobody's life.
UNRELATED = (
    "Which metal melts at the highest temperature?",
    "What is 17 times 23?",
    "How does a heat pump work?",
    "Write a regular expression for ISO dates.",
    "Who painted the ceiling of the Sistine Chapel?",
    "Explain the difference between TCP and UDP.",
    "What is the capital of Burkina Faso?",
    "How many bones does an adult human have?",
    "用一句话解释什么是黑洞。",
    "Sort a list of tuples by their second element in Haskell.",
    "What is the derivative of x to the power of x?",
    "水的沸点在高原上为什么更低？",
    "Translate 'thank you very much' into Icelandic.",
    "How far away is the Andromeda galaxy?",
    "List the noble gases.",
    "What does the HTTP status 451 mean?",
    "When did the Roman Republic end?",
    "请写一个计算斐波那契数列的函数。",
    "Name the longest river of Asia.",
    "How is penicillin made?",
)
SYSTEM = "You are a helpful assistant. " + "Follow the house rules: be brief, be kind, cite your sources. " * 60


def about_sets(course: Course, sets: SharedSets) -> Iterator[Row]:
    """How much of the right answer each finds in the lives of each set, and among the beliefs."""
    for name, lives in sets.lives.items():
        title, figure = JUDGED_BY[name]
        count = sum(bool(one.gold) for life in lives for one in life.questions)
        found = course.each(title, partial(_mean_of, name=name, lives=lives, figure=figure))
        yield Row(f"{figure}, {title}, {count} questions about {len(lives)} people", "", found, most=True)
        # Who was not told that life has nothing to say about it, which is no merit.
        told = replace(course, products=[one for one in course.products if one.name in found])
        if told.products and (asked := asked_about(lives[0])):
            yield from about(told, person_of(name, lives[0]), f"a person of {title}", asked)
    if sets.beliefs:
        both = course.each("PrecisionMemBench", lambda one: _precision_and_recall(one, sets))
        what = f"PrecisionMemBench, {len(sets.beliefs)} beliefs, {len(sets.cases)} questions"
        for at, figure in enumerate(("precision", "recall", "answers with nothing where nothing is right, share")):
            yield Row(f"{figure}, {what}", "", {name: three[at] for name, three in both.items()}, most=True)


def about(course: Course, person: str, label: str, questions: Sequence[str]) -> Iterator[Row]:
    """What a model would be given for these questions about a person, and for 20 about something else."""
    course = course.about(person)
    asked = questions[:ASKED]
    own = course.each("default context", lambda one: [_told(one, person, text) for text in asked])
    other = course.each("unrelated questions", lambda one: [_told(one, person, text) for text in UNRELATED])
    yield Row(f"tokens of a default context, questions about {label}, mean", "", _means(own, _tokens))
    what = f"{len(UNRELATED)} questions about something else, beside {label}"
    yield Row(f"tokens of a default context, {what}, mean", "", _means(other, _tokens))
    yield Row(f"answers with nothing, {what}, share", "", _means(other, lambda text: float(not text)), most=True)
    heads = course.each("prompt-cache prefix", lambda one: _unchanged(one, person, asked))
    what = f"{len(asked)} questions about {label} in one conversation, mean share"
    yield Row(f"head of a request that the next one repeats, {what}", "", heads, most=True)


def person_of(name: str, life: Corpus) -> str:
    """The id under which the products know who lived that life of a set."""
    return f"{name}-{life.id}"


def _mean_of(one: Product, name: str, lives: Sequence[Corpus], figure: str) -> float:
    """The mean of that figure over all questions. Errors: RefusedError when there is no time for all lives."""
    deadline = time.monotonic() + SECONDS
    found = []
    for life in lives:
        person = person_of(name, life)
        _remember(one, person, life.units, deadline)
        asked = [question for question in life.questions if question.gold]
        answers = load.answers(one.server, [one.search(person, question.text, LIMIT) for question in asked])
        named = _namer(one, life.units)
        found += [
            metrics.of_ranking(named(answer), question.gold) for answer, question in zip(answers, asked, strict=True)
        ]
    return statistics.mean(row[figure] for row in found)


def _remember(one: Product, person: str, units: Sequence[Unit], deadline: float) -> None:
    """Tell it all of that, in order; the hub with sessions, times and ids, for which the peers' calls have no place."""
    if isinstance(one, Hub):
        sessions = defaultdict(list)
        for unit in units:
            sessions[unit.session].append(unit)
        posts = [_post(one, person, name, some) for name, own in sessions.items() for some in in_parts(own, POSTED)]
        load.answers(one.server, posts)
        rows.wait_for_the_embedder()
        return
    for told, some in enumerate(in_parts(units, POSTED)):
        load.answers(one.server, [one.add(person, unit.text, f"{person}-{unit.id}") for unit in some])
        if time.monotonic() > deadline and (told + 1) * POSTED < len(units):
            raise load.RefusedError(f"it took {(told + 1) * POSTED} of {len(units)} texts of {person} in {SECONDS:g} s")


def _post(hub: Hub, person: str, session: str, units: Sequence[Unit]) -> bytes:
    messages = [
        {"role": "user", "content": unit.text, "external_id": unit.id, "timestamp": unit.at.isoformat()}
        for unit in units
    ]
    given = {"user_id": person, "session_id": f"{person}-{session}", "messages": messages}
    return hub.server.request("POST", "/api/v1/turns", given)


def _namer(one: Product, units: Sequence[Unit]) -> Callable[[Any], list[str]]:
    """From an answer to ids of units. A peer answers with texts, or with parts of them."""
    if isinstance(one, Hub):
        return lambda answer: [found["external_id"] for found in answer["results"]]
    by_text = {unit.text: unit.id for unit in units}

    def named(answer: Any) -> list[str]:
        ids = [by_text.get(text) or _with_part(text, by_text) for text in one.found(answer)]
        return list(dict.fromkeys(ids))

    return named


def _with_part(part: str, by_text: Mapping[str, str]) -> str:
    return next((own for text, own in by_text.items() if part.strip() in text), "")


def _precision_and_recall(one: Product, sets: SharedSets) -> tuple[float, float, float]:
    """Means over the questions that something answers; and the share of the others that get nothing."""
    named = _believe(one, sets)
    precision, recall, empty = [], [], []
    for case in sets.cases:
        found = named(load.call(one.server, _asked(one, case.person, case.question)))
        if case.right:
            precision.append(len(found & case.right) / len(found) if found else 0.0)
            recall.append(len(found & case.right) / len(case.right))
        else:
            empty.append(float(not found))
    return statistics.mean(precision), statistics.mean(recall), statistics.mean(empty)


def _believe(one: Product, sets: SharedSets) -> Callable[[Any], set[str]]:
    """Tell it all beliefs: the hub as facts. Returns how an answer is read: as their ids."""
    if isinstance(one, Hub):
        given = [{"user_id": own.person, "content": own.text, "category": own.category} for own in sets.beliefs]
        made = load.answers(one.server, [one.server.request("POST", "/api/v1/facts", body) for body in given])
        _wait_for_facts()
        ids = {fact["id"]: own.id for fact, own in zip(made, sets.beliefs, strict=True)}
        return lambda answer: {ids.get(name, name) for name in one.found(answer)}
    load.answers(one.server, [one.add(own.person, own.text, own.id) for own in sets.beliefs])
    texts = {own.text: own.id for own in sets.beliefs}
    return lambda answer: {texts.get(text, text) for text in one.found(answer)}


def _asked(one: Product, person: str, question: str) -> bytes:
    if isinstance(one, Hub):
        given = {"user_id": person, "query": question, "kinds": ["fact"], "limit": BELIEFS}
        return one.server.request("POST", "/api/v1/search", given)
    return one.search(person, question, BELIEFS)


def _wait_for_facts() -> None:
    # Django is set up only when a hub runs.
    from django.db import connections

    from memories.models import Fact, Status

    # What another belief superseded before its turn came gets no vector.
    live = Fact.objects.filter(status__in=Status.LIVE)
    load.wait_until(lambda: not live.exclude(embedded_hash=F("content_hash")).exists())
    # The clients are forked: they must not share a connection.
    connections.close_all()


def _told(one: Product, person: str, question: str) -> str:
    """What a model is given: the hub's context, or the rows of a peer's search with its own limit."""
    if isinstance(one, Hub):
        asked = one.server.request("POST", "/api/v1/context", {"user_id": person, "query": question})
        return load.call(one.server, asked).get("memory") or ""
    assert isinstance(one, Peer)
    found = one.found(load.call(one.server, one.search(person, question, one.says["default_limit"])))
    return "\n".join(f"- {text}" for text in found)


def _tokens(text: str) -> float:
    from memories.llm import tokens

    return float(tokens.count_once(text))


def _means(told: Mapping[str, Sequence[str]], figure: Callable[[str], float]) -> dict[str, float | None]:
    return {name: statistics.mean(map(figure, texts)) for name, texts in told.items()}


def _unchanged(one: Product, person: str, questions: Sequence[str]) -> float:
    """The mean share of a request that stands at the head of the next one, in a conversation of these questions."""
    sent = _through_the_gateway(one, person, questions) if isinstance(one, Hub) else _by_hand(one, person, questions)
    return statistics.mean(repeated(one, then) / len(one) for one, then in pairwise(sent))


def repeated(one: str, then: str) -> int:
    """How many characters at its head the second has of the first."""
    differ = (at for at, (left, right) in enumerate(zip(one, then, strict=False)) if left != right)
    return next(differ, min(len(one), len(then)))


def _by_hand(one: Product, person: str, questions: Sequence[str]) -> list[str]:
    """As an application does it with a library: what it finds stands in the system prompt, anew for each question."""
    return [
        flat(
            [{"role": "system", "content": f"{SYSTEM}\n\nMemories:\n{_told(one, person, talk[-1])}"}, *_messages(talk)]
        )
        for talk in (questions[:count] for count in range(1, len(questions) + 1))
    ]


def _through_the_gateway(hub: Hub, person: str, questions: Sequence[str]) -> list[str]:
    headers = {"X-Memory-User": person, "X-Memory-Session": f"asked-{person}"}
    with upstream.running(hub.endpoint) as endpoint:
        endpoint.begin([{"say": "Noted."}])
        for count in range(1, len(questions) + 1):
            given = [{"role": "system", "content": SYSTEM}, *_messages(questions[:count])]
            body = {"model": "m", "messages": given}
            load.call(hub.server, hub.server.request("POST", "/v1/chat/completions", body, **headers))
        return [flat(asked["messages"]) for asked in endpoint.asked]


def _messages(questions: Sequence[str]) -> list[dict[str, str]]:
    """A talk up to the last of these questions."""
    talk = []
    for question in questions:
        talk += [{"role": "user", "content": question}, {"role": "assistant", "content": "Noted."}]
    return talk[:-1]


def flat(messages: Sequence[Mapping[str, Any]]) -> str:
    """The messages of a request in their order, as one text."""
    return "\x1e".join(f"{one['role']}\x1f{one['content']}" for one in messages)
