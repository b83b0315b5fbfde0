"""The row about exactness: searches beside a ranking of all that a person has, read here once and kept nowhere.

The formula is the hub's own, which tests/scoring holds. What is compared is what it was given: no row of a person may
be missing, whatever plan PostgreSQL chose and whatever the hub keeps in memory.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks import load
from benchmarks.figures import Figure, at_least, at_most
from benchmarks.rows import row
from benchmarks.searching import QUESTIONS, SEARCH, make_neighbours, make_person
from benchmarks.stage import Stage, unprepared

if TYPE_CHECKING:
    from memories.models import EndUser
    from memories.retrieval.prepared_query import PreparedQuery
    from memories.scoring.weighting import Floats

TOP = 20
# So many people with few memories are asked about first: then the plans of prepared statements are made for such.
FEW, WITH_FEW = 12, 10
MANY = (100, 1_000, 5_000)
MOST = 20_000
_TURNS = """
    SELECT t.id::text, dense_rank() OVER (ORDER BY s.created_at, s.id)::int, t.terms, v.language,
        halfvec_send(v.vector)
    FROM memories_turn t JOIN memories_session s ON s.id = t.session_id JOIN memories_turnvector v ON v.turn_id = t.id
    WHERE t.end_user_id = %s ORDER BY s.created_at, s.id, t.number
"""
_FACTS = """
    SELECT f.id::text, row_number() OVER (ORDER BY f.created_at DESC, f.id DESC)::int, f.terms, v.language,
        halfvec_send(v.vector), f.confidence, f.importance, f.mentions, f.last_confirmed_at, f.forget_at IS NULL,
        f.category
    FROM memories_fact f JOIN memories_factvector v ON v.fact_id = f.id
    WHERE f.end_user_id = %s ORDER BY f.created_at DESC, f.id DESC
"""


class Compared(NamedTuple):
    """Of one search: how much of the right top it found, and how many rows it lacks."""

    memories: int
    agreement: float
    missing: int


@row("exact")
def exact(stage: Stage) -> Iterator[Figure]:
    """Facts and turns of people with few and many, with and without prepared statements, beside another tenant's."""
    make_neighbours(stage)
    people = [(f"exact-{place}", WITH_FEW) for place in range(FEW)]
    people += [(f"exact-of-{size}", max(1, size // stage.size.shrink)) for size in (*MANY, MOST)]
    for name, size in people:
        make_person(stage, name, turns=size, facts=size)
    expected = [one for name, size in people for one in _expected(name, size)]
    with unprepared(stage.hub) as plain:
        found = [one for server in (stage.hub, plain) for one in _compared(server, expected)]
    most = people[-1][1]
    what = f"top {TOP} of a search against a ranking of all"
    below, beyond = ([one for one in found if (one.memories < most) is few] for few in (True, False))
    yield Figure(f"{what}, to {people[-2][1]:,} facts or turns", _least(below), "", at_least(1, 1))
    yield Figure(f"{what}, {most:,} facts or turns", _least(beyond), "", at_least(0.98, 1))
    yield Figure("rows that one of these searches lacks", max(one.missing for one in found), "", at_most(0, 0))


class Expected(NamedTuple):
    """One search, and the ids of the best that it should find."""

    memories: int
    body: dict[str, Any]
    best: list[str]


def _least(found: list[Compared]) -> float:
    return min(one.agreement for one in found)


def _compared(server: load.Server, expected: list[Expected]) -> list[Compared]:
    """Over one connection: one of PostgreSQL's sees all statements, and prepares them in time."""
    answers = load.answers(server, [server.request("POST", SEARCH, one.body) for one in expected])
    return [held_against(one, answer) for one, answer in zip(expected, answers, strict=True)]


def held_against(one: Expected, answer: Any) -> Compared:
    """The answer of a search beside the ids that it should name."""
    found = {result["id"] for result in answer["results"]}
    return Compared(one.memories, len(found & set(one.best)) / len(one.best), len(one.best) - len(found))


def _expected(name: str, size: int) -> list[Expected]:
    # Django is set up only when a stage is open.
    from django.db import connections

    from memories.models import EndUser
    from memories.retrieval import prepared_query

    person = EndUser.objects.get(external_id=name)
    questions = [prepared_query.prepare(f"{text} ({name})") for text in QUESTIONS[: 1 if size <= WITH_FEW else None]]
    expected = [
        Expected(size, {"user_id": name, "query": question.text, "kinds": [kind], "limit": TOP}, ids)
        for kind, best in (("fact", _best_facts), ("turn", best_turns))
        for question, ids in zip(questions, best(person, questions), strict=True)
    ]
    # The clients are forked: they must not share a connection.
    connections.close_all()
    return expected


def best_turns(person: "EndUser", questions: "list[PreparedQuery]") -> list[list[str]]:
    return _best(_read(_TURNS, person), questions, lambda relevance: relevance, alone=False)


def _best_facts(person: "EndUser", questions: "list[PreparedQuery]") -> list[list[str]]:
    from memories import conf
    from memories.scoring import weighting
    from memories.scoring.decay import DecayInput, decay_score

    found, now, rules = _read(_FACTS, person), datetime.now(UTC), conf.rules(person.tenant)
    left = [
        one[6] if one[9] else decay_score(DecayInput(one[6], one[8], one[7], one[10]), rules, now=now) for one in found
    ]
    weights = weighting.Weights(
        confidence=np.array([one[5] for one in found], np.float32),
        decay=np.array(left, np.float32),
        age_days=np.array([(now - one[8]) // timedelta(days=1) for one in found], np.float32),
    )
    return _best(found, questions, lambda relevance: weighting.weigh(relevance, weights).total, alone=True)


def _read(statement: str, person: "EndUser") -> list[tuple[Any, ...]]:
    from memories.db import binary_rows

    return binary_rows.fetched(statement, [person.pk])


def _best(
    found: list[tuple[Any, ...]],
    questions: "list[PreparedQuery]",
    weighed: "Callable[[Floats], Floats]",
    *,
    alone: bool,
) -> list[list[str]]:
    """For each question the ids of the best."""
    from memories.db import binary_rows as rows
    from memories.scoring import dense, ranking

    space = questions[0].space
    assert space
    units = ranking.Units.of(
        sessions=np.array([one[1] for one in found], np.int32),
        packed=[one[2] for one in found],
        vectors=rows.vectors([one[4] for one in found]),
        languages=[one[3] for one in found],
        blocks=dense.blocks(space.model, space.dimensions),
        alone=alone,
    )
    totals = (weighed(ranking.score(units, question.queries).total) for question in questions)
    # Sorted whole: no selection of ours comes between.
    return [[found[place][0] for place in np.argsort(-total, kind="stable")[:TOP]] for total in totals]
