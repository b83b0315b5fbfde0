"""The debounce policy as tables: which turns make a round, and when they are due (rules.md, 1.3 and 2.2)."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from memories.conf import Rules
from memories.models import Turn
from memories.queue.debounce import PendingTurns, due_time
from tests.each import each

RULES = Rules(debounce_seconds=30, max_wait_seconds=300, lease_seconds=120, max_attempts=5)
START = datetime.fromisoformat("2026-11-03T09:00:00+00:00")
# u: user, a: final assistant, c: assistant calling a tool, t: tool, s: system
ROLES = {"u": "user", "a": "assistant", "c": "assistant", "t": "tool", "s": "system"}


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def talk(letters: str, *, every: float = 1, tokens: int = 10) -> list[Turn]:
    """Turns in these roles, one each `every` seconds from the start on."""
    return [
        Turn(
            role=ROLES[letter],
            token_count=tokens,
            tool_calls=[{"id": "1"}] if letter == "c" else None,
            created_at=at(place * every),
        )
        for place, letter in enumerate(letters)
    ]


def due(turns: Sequence[Turn], *, flush: bool = False, rules: Rules = RULES) -> float | None:
    """Seconds after the start at which these turns are due, seen at the moment of the last."""
    last = turns[-1].created_at
    moment = due_time(PendingTurns().plus(turns), last_at=last, rules=rules, flush=flush, now=last)
    return None if moment is None else (moment - START).total_seconds()


@each(
    ("letters", "rounds", "is_open"),
    [
        ("", 0, False),
        ("u", 0, True),
        ("ua", 1, False),
        ("uaa", 1, False),
        ("uua", 1, False),
        ("uuuu", 0, True),
        ("uauaua", 3, False),
        ("uauau", 2, True),
        ("a", 0, False),
        ("aua", 1, False),
        ("uc", 0, True),
        ("ucta", 1, False),
        ("ust", 0, True),
        ("usa", 1, False),
        ("uctctau", 1, True),
    ],
)
def test_a_round_is_a_user_turn_with_its_replies(letters: str, rounds: int, is_open: bool) -> None:
    pending = PendingTurns().plus(talk(letters))
    assert (pending.rounds, pending.round_open) == (rounds, is_open)


@each(
    ("letters", "seconds"),
    [
        # Answered: the debounce after the last turn.
        ("ua", 1 + 30),
        ("uaua", 3 + 30),
        ("uau", 2 + 30),
        ("ucta", 3 + 30),
        # Not answered yet: the longest wait after the first.
        ("u", 300),
        ("uuu", 300),
        ("us", 300),
        ("uct", 300),
        # Nothing that a person said: never.
        ("a", None),
        ("sat", None),
        ("c", None),
    ],
)
def test_when_a_stretch_is_due(letters: str, seconds: float | None) -> None:
    assert due(talk(letters)) == seconds


@each(("letters", "seconds"), [("u", 0), ("ua", 1), ("uuuu", 3), ("a", None), ("s", None)])
def test_a_flush_is_due_at_once_but_needs_a_user_turn(letters: str, seconds: float | None) -> None:
    assert due(talk(letters), flush=True) == seconds


@each(
    ("letters", "seconds"),
    [("ua" * 19, 37 + 30), ("ua" * 20, 39), ("ua" * 25, 49), ("u" * 40, 300), ("u" * 40 + "a", 40 + 30)],
)
def test_twenty_rounds_are_due_at_once_and_unanswered_turns_are_none(letters: str, seconds: float) -> None:
    assert due(talk(letters)) == seconds


@each(
    ("letters", "tokens", "seconds"),
    [
        ("ua", 2_999, 1 + 30),
        ("ua", 3_000, 1),
        ("u", 6_000, 0),
        ("u", 5_999, 300),
        ("ut", 3_000, 1),
        ("a", 60_000, None),
    ],
)
def test_six_thousand_tokens_are_due_at_once(letters: str, tokens: int, seconds: float | None) -> None:
    assert due(talk(letters, tokens=tokens)) == seconds


def test_a_talk_without_pauses_is_due_by_the_longest_wait() -> None:
    # Few rounds, few tokens: nothing but the wait itself can end it.
    pending = PendingTurns()
    for second in range(1_000):
        letter = "ua"[second > 0]
        turn = talk(letter, tokens=1)[0]
        turn.created_at = at(second)
        pending = pending.plus([turn])
        moment = due_time(pending, last_at=at(second), rules=RULES, flush=False, now=at(second))
        assert moment is not None
        assert moment <= at(300)
        assert moment == (at(300) if second == 0 or second >= 270 else at(second + 30))


def test_a_tenants_numbers_are_followed() -> None:
    rules = Rules(debounce_seconds=5, max_wait_seconds=8, lease_seconds=120, max_attempts=5, rounds_due_at_once=2)
    assert due(talk("ua"), rules=rules) == 1 + 5
    assert due(talk("uaa", every=2), rules=rules) == 8
    assert due(talk("u"), rules=rules) == 8
    assert due(talk("uaua"), rules=rules) == 3


def test_counting_in_parts_is_counting_at_once() -> None:
    turns = talk("suctauauust")
    for cut in range(len(turns) + 1):
        assert PendingTurns().plus(turns[:cut]).plus(turns[cut:]) == PendingTurns().plus(turns)


@given(
    letters=st.text("uacts", min_size=1, max_size=60),
    gap=st.integers(0, 400),
    tokens=st.integers(0, 400),
    flush=st.booleans(),
)
def test_what_holds_for_every_talk(letters: str, gap: int, tokens: int, flush: bool) -> None:
    turns = talk(letters, every=gap, tokens=tokens)
    seconds = due(turns, flush=flush)
    last = (len(turns) - 1) * gap
    assert (seconds is None) == ("u" not in letters)
    if seconds is not None:
        # Never later than the longest wait after the first turn, and a talk that is too old is due in the past.
        assert seconds <= max(300, last)
        assert PendingTurns().plus(turns).rounds <= letters.count("u")
        assert not flush or seconds == last
