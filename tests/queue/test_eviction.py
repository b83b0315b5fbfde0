"""Which turns leave a full window, as tables: whole rounds, the oldest first, down to the share that is kept."""

from collections.abc import Iterator
from dataclasses import replace

from memories.conf import Rules
from memories.models import Turn
from memories.queue.eviction import Eviction, WindowContents, evict
from tests.each import each

RULES = Rules(debounce_seconds=30, max_wait_seconds=300, lease_seconds=120, max_attempts=5)


def turns_of(said: str, tokens: int = 10) -> list[Turn]:
    """One letter a turn: user, assistant, system, tool, or an assistant that calls (c)."""
    roles = {"u": "user", "a": "assistant", "s": "system", "t": "tool", "c": "assistant"}
    return [
        Turn(number=number, role=roles[letter], tool_calls=[{"id": "c"}] if letter == "c" else None, token_count=tokens)
        for number, letter in enumerate(said.replace(" ", ""), start=1)
    ]


def window_of(turns: list[Turn]) -> WindowContents:
    return WindowContents(sum(turn.token_count for turn in turns), sum(turn.role == "user" for turn in turns))


def left(said: str, rules: Rules = RULES, tokens: int = 10) -> Eviction | None:
    turns = turns_of(said, tokens)
    return evict(turns, window_of(turns), rules)


@each(
    ("tokens", "rounds", "over", "roomy"),
    [
        (0, 0, False, True),
        (6_400, 8, False, True),
        (6_401, 8, False, False),
        (6_400, 9, False, False),
        (8_000, 10, False, False),
        (8_001, 1, True, False),
        (1, 11, True, False),
    ],
)
def test_the_limits(tokens: int, rounds: int, over: bool, roomy: bool) -> None:
    window = WindowContents(tokens, rounds)
    assert (window.is_over(RULES), window.is_small_enough(RULES)) == (over, roomy)


@each(
    ("said", "last", "rounds"),
    [
        # Eleven rounds: three leave, for eight are 80 % of ten.
        ("ua " * 11, 6, 3),
        ("ua " * 30, 44, 22),
        # A greeting before anybody asked leaves with nobody's round.
        ("sa " + "ua " * 11, 8, 3),
        ("u " * 11, 3, 3),
        ("ucta " * 11, 12, 3),
        # System turns among the rounds go with them.
        ("usa " * 11, 9, 3),
    ],
)
def test_rounds(said: str, last: int, rounds: int) -> None:
    found = left(said)
    assert found
    assert (found.last_number, found.rounds, found.is_all) == (last, rounds, True)
    assert found.tokens == 10 * last


@each(
    ("said", "tokens", "last"),
    [
        # 12 turns of 700: 8,400, and 6,400 stay at most, which are nine turns; a round has two.
        ("ua " * 6, 700, 4),
        # The last round stays though it is too large alone.
        ("ua ua " + "ucta", 5_000, 4),
        ("ua", 5_000, None),
        ("aaaa", 5_000, None),
        ("u", 9_000, None),
        ("", 0, None),
    ],
)
def test_tokens(said: str, tokens: int, last: int | None) -> None:
    found = left(said, replace(RULES, batch_tokens=100_000), tokens)
    assert (found.last_number if found else None) == last


@each(
    ("said", "last"),
    [
        # The tool that answers in the fourth round was called in the third: they go, or stay, together.
        ("ua ua uc ut" + " ua" * 8, 8),
        ("ua ua uct ua" + " ua" * 8, 7),
        # Called and never answered.
        ("ua ua uc ua" + " ua" * 8, 6),
    ],
)
def test_no_tool_is_parted_from_its_call(said: str, last: int) -> None:
    rules = replace(RULES, window_keep=0.9)
    found = left(said, rules)
    assert found
    assert found.last_number == last


def test_a_round_that_ends_with_an_answer_to_the_last_but_one_stays_whole() -> None:
    assert left("uc ut", replace(RULES, window_rounds=1)) is None
    found = left("ua ut", replace(RULES, window_rounds=1))
    assert found is None


def test_as_many_leave_at_a_time_as_a_prompt_can_show() -> None:
    found = left("ua " * 100, replace(RULES, batch_tokens=100))
    assert found == Eviction(10, tokens=100, rounds=5, is_all=False)
    # A long text counts as what is shown of it.
    found = left("ua " * 100, replace(RULES, batch_tokens=5_000), tokens=9_000)
    assert found == Eviction(4, tokens=36_000, rounds=2, is_all=False)
    # A single round goes whatever its size; calls of tools and their answers are not shown.
    found = left("u" + "a" * 50 + " ua" * 20, replace(RULES, batch_tokens=100))
    assert found
    assert (found.last_number, found.is_all) == (51, False)
    found = left("u" + "ct" * 50 + "a" + " ua" * 11, replace(RULES, batch_tokens=100))
    assert found
    assert (found.rounds, found.is_all) == (4, True)


def test_no_more_is_read_than_leaves_and_a_round_besides() -> None:
    read: list[int] = []

    def noted(turns: list[Turn]) -> Iterator[Turn]:
        for turn in turns:
            read.append(turn.number)
            yield turn

    turns = turns_of("ua " * 11 + "ua " * 0)
    assert evict(noted(turns), window_of(turns), RULES) == Eviction(6, tokens=60, rounds=3)
    # The next round is read to its end, which its successor tells.
    assert read == list(range(1, 10))
