"""What was said at about the same time in sessions that run beside each other lends its words to what lacks them."""

import numpy as np

from memories.scoring.constants import DEFAULT
from memories.scoring.moments import Moments, Stretches
from memories.scoring.ranking import Query, Units, score
from tests.each import each
from tests.scoring.stores import units

HOUR, DAY = 3_600.0, 86_400.0
# A year of calls, notes and messages: a session of each kind, and every day one of each at the same hour.
CALL, NOTE, MESSAGE = "a call with Ada", "repaired the kettle in the kitchen", "bring milk please"
DAYS = 30


def a_phone(*, told_on: int, beside: bool = True) -> Units:
    """Three sessions; a note of one day tells of a regatta. Not `beside`: one session ends before the next begins."""
    notes = ["sailed in the regatta" if day == told_on else NOTE for day in range(DAYS)]
    texts = [CALL] * DAYS + notes + [MESSAGE] * DAYS
    days = np.tile(np.arange(DAYS), 3) if beside else np.arange(3 * DAYS)
    minutes = np.repeat([1.0, 2.0, 3.0], DAYS) * 60
    return units(texts, [0] * DAYS + [1] * DAYS + [2] * DAYS, times=(days * DAY + minutes).tolist())


def context_of_calls(store: Units) -> list[float]:
    return [float(one) for one in score(store, [Query.of("who called at the regatta?")]).context[:DAYS]]


def test_a_call_is_found_by_the_note_of_the_same_hour() -> None:
    context = context_of_calls(a_phone(told_on=12))
    assert int(np.argmax(context)) == 12
    # Those of the same week come next, from its Monday on.
    assert {place for place, added in enumerate(context) if added > max(context) / 8} == set(range(11, 18))
    assert context[12] > 4 * sorted(context)[-2]


def test_sessions_that_follow_each_other_keep_their_scores() -> None:
    store = a_phone(told_on=12, beside=False)
    assert store.moments is None
    assert max(context_of_calls(store)) < context_of_calls(a_phone(told_on=12))[12] / 5


@each(
    ("spans", "beside"),
    [
        ([(0, 5), (6, 9)], [False, False]),
        ([(0, 5), (5, 9)], [False, False]),
        ([(3, 3), (3, 9)], [False, False]),
        ([(0, 5), (4, 9)], [True, True]),
        ([(0, 9), (4, 4)], [True, True]),
        ([(0, 9), (20, 25), (3, 4), (10, 11)], [True, False, True, False]),
        ([(10, 12), (0, 20), (15, 16)], [True, True, True]),
    ],
)
def test_which_sessions_run_beside_another(spans: list[tuple[int, int]], beside: list[bool]) -> None:
    times = np.array([float(moment) for span in spans for moment in span])
    starts = np.arange(0, len(times), 2)
    found = Moments.of(times, starts, np.ones(len(times), np.float32), DEFAULT)
    told = [False] * len(spans) if found is None else found.beside[np.searchsorted(found.starts, starts)].tolist()
    assert told == beside


def test_what_is_told_in_one_hour_alone_says_nothing_of_when() -> None:
    texts, times = ["regatta", "tea", "milk", "mug"], [0.0, 120.0, 60.0, 180.0]
    store = units(texts, [0, 0, 1, 1], times=times)
    assert store.moments is not None
    assert store.moments.added(store.words.holding(Query.of("regatta").terms), DEFAULT).values.tolist() == [0, 0]


def test_of_no_terms_and_of_unknown_ones_nothing_is_added() -> None:
    store = a_phone(told_on=3)
    assert store.moments is not None
    for query in ("", "zeppelin"):
        assert not store.moments.added(store.words.holding(Query.of(query).terms), DEFAULT).values.any()


def test_what_units_have_alike_is_told_of_some_of_them_as_of_all() -> None:
    alike = Stretches(np.array([0, 2, 3, 6]), np.array([1, 2, 3, 4], np.float32), 7)
    whole = alike.at(np.arange(7))
    assert whole.tolist() == [1, 1, 2, 3, 3, 3, 4]
    for some in (slice(None), slice(0, 7), slice(1, 5), slice(4, 5), slice(6, 7), slice(3, 3)):
        assert alike.at(some).tolist() == whole[some].tolist()
