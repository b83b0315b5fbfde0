"""What looks at an end state sees what is wrong with it, and nothing in what is right; its digest likewise."""

from collections.abc import Callable
from dataclasses import replace

from evals.talks import Session
from memories.conf import Rules
from memories.models import Turn
from tests.each import each
from tests.faults import end_state, killing, posting
from tests.faults.end_state import Kept

RULES = Rules(window_rounds=2, window_tokens=200)
SAID = [("user", "I keep bees"), ("assistant", "How many?"), ("user", "Three hives"), ("assistant", "So few!")]
TOLD = {"long": [text for _, text in SAID], "short": ["Hello you", "Hi"]}


def turns(*said: tuple[str, str]) -> list[Turn]:
    return [Turn(number=number, role=role, content=text) for number, (role, text) in enumerate(said, start=1)]


def kept() -> Kept:
    """Of a session of four fed turns, and one of two."""
    return Kept(
        turns={"long": turns(*SAID), "short": turns(("user", "Hello you"), ("assistant", "Hi"))},
        runs={"long": [(1, 2), (3, 4)], "short": [(1, 2)]},
        episodes={"long": [(1, 4)]},
        facts=[("i keep bees", "active"), ("three hives", "active")],
        evidence={"i keep bees": frozenset({("long", 1)}), "three hives": frozenset({("long", 3)})},
        windows={"long": (40, 2, False), "short": (10, 1, False)},
    )


Change = Callable[[Kept], Kept]
WRONG: dict[str, tuple[Change, str]] = {
    "lost turn": (lambda one: replace(one, turns={**one.turns, "long": turns(*SAID[:3])}), "not those that were told"),
    "gap": (lambda one: replace(one, runs={**one.runs, "long": [(1, 2), (4, 4)]}), "extractions: 0 of turn 3"),
    "double": (lambda one: replace(one, runs={**one.runs, "long": [(1, 3), (3, 4)]}), "extractions: 2 of turn 3"),
    "not told": (lambda one: replace(one, episodes={"long": [(1, 3)]}), "episodes: 0 of turn 4"),
    "told twice": (lambda one: replace(one, episodes={"long": [(1, 4), (1, 2)]}), "episodes: 2 of turn 1"),
    "too short": (lambda one: replace(one, episodes={**one.episodes, "short": [(1, 2)]}), "an episode of 2 fed turns"),
    "parked": (lambda one: replace(one, windows={**one.windows, "long": (40, 2, True)}), "parked"),
    "full": (lambda one: replace(one, windows={**one.windows, "long": (40, 3, False)}), "40 tokens in 3 rounds"),
    "strange": (lambda one: replace(one, facts=[*one.facts, ("i keep cats", "active")]), "1 facts that nobody said"),
}


def test_nothing_is_wrong_with_what_is_right() -> None:
    assert list(end_state.wrong(kept(), TOLD, RULES)) == []


@each("what", WRONG)
def test_what_is_wrong_is_seen(what: str) -> None:
    change, says = WRONG[what]
    assert says in "\n".join(end_state.wrong(change(kept()), TOLD, RULES))


OTHERS: dict[str, Change] = {
    "a fact less": lambda one: replace(one, facts=one.facts[:1]),
    "another status": lambda one: replace(one, facts=[("i keep bees", "pending"), *one.facts[1:]]),
    "other evidence": lambda one: replace(one, evidence={**one.evidence, "i keep bees": frozenset({("long", 3)})}),
    "not told to the end": lambda one: replace(one, episodes={"long": [(1, 3)]}),
    "not extracted to the end": lambda one: replace(one, runs={**one.runs, "long": [(1, 2)]}),
}
SAME: dict[str, Change] = {
    "one extraction": lambda one: replace(one, runs={**one.runs, "long": [(1, 4)]}),
    "two episodes": lambda one: replace(one, episodes={"long": [(1, 2), (3, 4)]}),
}


@each("what", [*OTHERS, *SAME])
def test_the_digest_tells_what_timing_may_not_change(what: str) -> None:
    changed = end_state.digest({**OTHERS, **SAME}[what](kept()))
    assert (changed == end_state.digest(kept())) is (what in SAME)


def test_what_is_told_at_a_time_is_whole_rounds() -> None:
    roles = ["assistant", "user", "user", "assistant", "assistant", "user", "assistant", "user"]
    messages = [{"role": role, "content": str(place)} for place, role in enumerate(roles)]
    rounds = posting.rounds_of(Session("s", messages).messages)
    assert [[one["external_id"] for one in some] for some in rounds] == [["0", "1", "2", "3", "4"], ["5", "6"], ["7"]]


def test_a_plan_of_kills_is_the_same_for_a_seed() -> None:
    plan = killing.planned(10, within=60, seed=1)
    assert plan == killing.planned(10, within=60, seed=1) != killing.planned(10, within=60, seed=2)
    assert {kill.victim for kill in plan} == set(killing.VICTIMS)
    assert [kill.at for kill in plan] == sorted(kill.at for kill in plan)
    assert all(0 <= kill.at <= 60 for kill in plan)
