"""Searches and writes at each size, all products by turns, and how much of the right answer each finds."""

import statistics
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from benchmarks import exactness, load
from benchmarks.compare.figures import Row
from benchmarks.compare.ground import TOP, Ground, name_of
from benchmarks.compare.products import Hub, Peer, Product
from benchmarks.figures import at_least, at_most
from benchmarks.load import Measured
from benchmarks.rows import CLIENTS

# Requests of one client in a turn, as long as a product does not take longer than this for them.
COUNT, LEAST, SECONDS = 40, 3, 8.0
ASKED_FOR_RECALL = 40
LOOK_SECONDS = 0.5
# So many characters of a failure are told.
TOLD = 200
# The size of which the targets speak.
JUDGED = 120_000
Turns = dict[str, list[Measured]]
Scripts = list[list[str]]
Value = TypeVar("Value")


def told(error: BaseException) -> str:
    """In one line: how an answer begins, without its head; or what failed, and how the log behind it ends."""
    head, _, body = str(error).replace("\r", "").rpartition("\n\n")
    words = " ".join(body.split())
    if len(words) > TOLD:
        words = words[:TOLD] if head else f"{words[: TOLD // 4]} … {words[-TOLD * 3 // 4 :]}"
    return words or type(error).__name__


@dataclass(frozen=True)
class Course:
    """Who is measured on what, how often; `failures` says what could not be measured, and why."""

    products: list[Product]
    ground: Ground
    rounds: int
    failures: list[str] = field(default_factory=list)

    def about(self, person: str) -> "Course":
        """The same with those that have all rows of that person."""
        return replace(self, products=[one for one in self.products if one.has(person)])

    def each(self, what: str, measure: Callable[[Product], Value]) -> dict[str, Value]:
        """Of each product by its name. Who fails is left out."""
        found = {}
        for one in self.products:
            try:
                found[one.name] = measure(one)
            except (load.RefusedError, OSError) as error:
                self.failures.append(f"{one.title}, {what}: {told(error)}")
        return found

    def by_turns(self, what: str, measure: Callable[[Product, int], Measured], names: Collection[str] = ()) -> Turns:
        """All (or those of these names) in each turn, another one first each time. The first turn is warm-up."""
        among = [one for one in self.products if not names or one.name in names]
        found: Turns = {}
        for turn in range(self.rounds + 1):
            first = turn % len(among)
            course = replace(self, products=[*among[first:], *among[:first]])
            for name, measured in course.each(what, partial(_at, measure, turn)).items():
                found.setdefault(name, []).append(measured)
        return {name: turns[1:] for name, turns in found.items() if len(turns) > self.rounds}


def at_size(course: Course, size: int) -> Iterator[Row]:
    """Everything that is asked about one person with so many rows."""
    person, label = name_of(size), f"{size:,} rows"
    course = course.about(person)
    yield from _recall(course, person, label, is_judged=size >= JUDGED)
    for clients in (1, CLIENTS):
        what = f"search, {label}, {clients} client{'s'[: clients > 1]}"
        scripts = course.each(what, partial(_scripts, person=person, ground=course.ground, clients=clients))
        served = course.by_turns(what, partial(_served, person=person, scripts=scripts), scripts)
        called = course.by_turns(what, partial(_called, person=person, scripts=scripts), scripts)
        is_judged = size >= JUDGED and clients == 1
        for which in ("p50", "p95"):
            target = at_most(1, 0.7) if is_judged and which == "p50" else None
            yield Row(f"{what}, all over HTTP, {which}", "ms", _medians(served, which), target=target)
            yield Row(f"{what}, as applications call it, {which}", "ms", _medians(called, which))


def seconds_until_whole(hub: Hub, ground: Ground, size: int) -> float:
    """From the first search of a person, which begins to make their index, to the first that read all of their rows."""
    began = time.monotonic()
    while "degraded" in load.call(hub.server, hub.search(name_of(size), ground.questions[0])):
        time.sleep(LOOK_SECONDS)
    return time.monotonic() - began


def adding(course: Course, person: str, label: str) -> Iterator[Row]:
    """One row after the other for one person, over HTTP."""
    course, texts = course.about(person), course.ground.texts

    def added(one: Product, turn: int) -> Measured:
        some = [texts[(turn * COUNT + place) % len(texts)] for place in range(COUNT)]
        requests = [one.add(person, text, f"{person}-{turn}-{place}") for place, text in enumerate(some)]
        return load.run(one.server, [requests])

    what = f"add of one row, {label}"
    found = course.by_turns(what, added)
    for which in ("p50", "p95"):
        yield Row(f"{what}, 1 client, all over HTTP, {which}", "ms", _medians(found, which))


def _recall(course: Course, person: str, label: str, *, is_judged: bool) -> Iterator[Row]:
    """Of the best 20 of each question, by a ranking of all rows, how many the product's answer has (None: nobody knows
    its ranking); and how many rows it has at all."""
    questions = course.ground.questions[:ASKED_FOR_RECALL]

    def measured(one: Product) -> tuple[float | None, float]:
        answers = load.answers(one.server, [one.search(person, question) for question in questions])
        found = [set(one.found(answer)) for answer in answers]
        count = statistics.mean(map(len, found))
        if isinstance(one, Hub):
            right = _ranked_by_the_hub(person, questions)
        elif isinstance(one, Peer) and one.ranks_by_words:
            return None, count
        else:
            right = [course.ground.nearest(person, place) for place in range(len(questions))]
        shares = [len(set(best) & has) / len(best) for best, has in zip(right, found, strict=True)]
        return statistics.mean(shares), count

    what = f"recall@{TOP}, {label}"
    both = course.each(what, measured)
    target = at_least(0.98, 1) if is_judged else None
    recall, counts = ({name: pair[at] for name, pair in both.items()} for at in range(2))
    yield Row(what, "", recall, most=True, target=target, alone=True)
    yield Row(f"rows that a search for {TOP} returns, {label}, mean", "", counts, most=True)


def _ranked_by_the_hub(person: str, questions: Sequence[str]) -> list[list[str]]:
    """Ids of turns, by the hub's own formula over all of them, read here once."""
    from django.db import connections

    from memories.models import EndUser
    from memories.retrieval import prepared_query

    one = EndUser.objects.get(external_id=person)
    found = exactness.best_turns(one, [prepared_query.prepare(question) for question in questions])
    # The clients are forked: they must not share a connection.
    connections.close_all()
    return found


def _scripts(one: Product, *, person: str, ground: Ground, clients: int) -> Scripts:
    """The questions of each client in a turn: as many as the product answers in some seconds."""
    if isinstance(one, Hub):
        # Each of its processes knows the vectors of all questions then.
        load.run(one.server, [[one.search(person, question) for question in ground.questions]] * CLIENTS)
    asked = load.run(one.server, [[one.search(person, question) for question in ground.questions[:LEAST]]])
    most, least = (COUNT, LEAST) if clients == 1 else (COUNT // 4, 1)
    count = max(least, min(most, int(SECONDS * 1_000 / (asked.p50 * clients))))
    every = ground.questions
    return [[every[(client * count + place) % len(every)] for place in range(count)] for client in range(clients)]


def _served(one: Product, turn: int, *, person: str, scripts: Mapping[str, Scripts]) -> Measured:
    """Questions whose vectors are at hand: the peers look them up, the hub has them in memory."""
    return load.run(one.server, [[one.search(person, text) for text in script] for script in scripts[one.name]])


def _called(one: Product, turn: int, *, person: str, scripts: Mapping[str, Scripts]) -> Measured:
    """The hub over HTTP with new questions, which it embeds; a peer as a library, with vectors at hand."""
    if isinstance(one, Peer):
        return one.inside(person, scripts[one.name])
    new = [
        [f"{text} ({turn}.{client}.{place})" for place, text in enumerate(script)]
        for client, script in enumerate(scripts[one.name])
    ]
    return _served(one, turn, person=person, scripts={one.name: new})


def _at(measure: Callable[[Product, int], Measured], turn: int, one: Product) -> Measured:
    return measure(one, turn)


def _medians(found: Turns, which: str) -> dict[str, float | None]:
    return {name: statistics.median(getattr(one, which) for one in turns) for name, turns in found.items()}
