"""The window of a conversation: whole rounds within both limits, and chat messages that endpoints take; as tables."""

from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.context import window
from memories.llm.prompts.framing import TRUNCATED
from memories.models import Turn

ROLES = {"u": "user", "a": "assistant", "t": "tool"}
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


def turns(shape: str, *, tokens: int = 10) -> list[Turn]:
    """One turn for each letter: u, a, t, and c for an assistant that calls a tool; numbered from 1."""
    made = []
    for number, letter in enumerate(shape, start=1):
        calls = [CALL] if letter == "c" else None
        role = ROLES.get(letter, "assistant")
        made.append(
            Turn(
                number=number, role=role, content=f"{letter}{number}", tool_calls=calls, token_count=tokens, parts=None
            )
        )
    return made


def kept(shape: str, *, max_tokens: int = 1_000, max_rounds: int = 10, tokens: int = 10) -> str:
    left = window.trim(turns(shape, tokens=tokens), max_tokens=max_tokens, max_rounds=max_rounds)
    return "".join(turn.content[0] for turn in left)


CALL_TOKENS = window.cost(turns("c")) - 10


@pytest.mark.parametrize(
    ("shape", "limits", "expected"),
    [
        ("", {}, ""),
        ("uaua", {}, "uaua"),
        ("a", {}, "a"),
        # By rounds.
        ("uauaua", {"max_rounds": 2}, "uaua"),
        ("uauaua", {"max_rounds": 1}, "ua"),
        ("uuu", {"max_rounds": 2}, "uu"),
        ("uctaucta", {"max_rounds": 1}, "ucta"),
        # A beginning without a user turn goes with none.
        ("aua", {"max_rounds": 2}, "aua"),
        ("aua", {"max_rounds": 1}, "ua"),
        # By tokens, in whole rounds.
        ("uaua", {"max_tokens": 40}, "uaua"),
        ("uaua", {"max_tokens": 39}, "ua"),
        ("uaua", {"max_tokens": 20}, "ua"),
        ("uauaaa", {"max_tokens": 50}, "uaaa"),
        ("uctaua", {"max_tokens": 60 + CALL_TOKENS}, "uctaua"),
        ("uctaua", {"max_tokens": 59 + CALL_TOKENS}, "ua"),
        # The newest round alone is too long: the user's turn and the newest steps, no tool's answer without its call.
        ("uauaaa", {"max_tokens": 30}, "uaa"),
        ("uaaaa", {"max_tokens": 30}, "uaa"),
        ("uctctcta", {"max_tokens": 40 + CALL_TOKENS}, "ucta"),
        ("uctctcta", {"max_tokens": 39 + CALL_TOKENS}, "ua"),
        ("uctt", {"max_tokens": 30 + CALL_TOKENS}, "uctt"),
        ("ua", {"max_tokens": 1}, "ua"),
        ("uct", {"max_tokens": 0}, "uct"),
        ("u", {"max_tokens": 0}, "u"),
        ("aaa", {"max_tokens": 20}, "aa"),
    ],
)
def test_trimming(shape: str, limits: dict[str, int], expected: str) -> None:
    assert kept(shape, **limits) == expected


@given(
    shape=st.text("uact", max_size=30),
    max_tokens=st.integers(0, 400),
    max_rounds=st.integers(1, 12),
)
def test_what_is_kept_is_within_the_limits_and_whole(shape: str, max_tokens: int, max_rounds: int) -> None:
    given_turns = turns(shape)
    left = window.trim(given_turns, max_tokens=max_tokens, max_rounds=max_rounds)
    numbers = [turn.number for turn in left]
    assert numbers == sorted(numbers)
    assert bool(left) == bool(given_turns)
    assert sum(turn.role == "user" for turn in left) <= max_rounds
    rounds = window._split(given_turns, lambda turn: turn.role == "user")
    if window.cost(rounds[-1] if rounds else []) <= max_tokens:
        # Whole rounds, from the newest backwards, until one does not fit.
        assert window.cost(left) <= max_tokens
        assert left in [list(chain.from_iterable(rounds[at:])) for at in range(len(rounds) + 1)]
    else:
        assert {turn.number for turn in left} <= {turn.number for turn in rounds[-1]}
    for turn in left:
        if turn.role == "tool" and turn.number > 1:
            assert turn.number - 1 in numbers


class TestTooLongAlone:
    def test_long_texts_keep_their_two_ends(self) -> None:
        asked, answer = turns("ua", tokens=9_000)
        asked.content = "Start" + "x" * 50_000 + "End"
        left = window.trim([asked, answer], max_tokens=8_000, max_rounds=10)
        assert [turn.number for turn in left] == [1, 2]
        assert left[0].content.startswith("Startxx")
        assert left[0].content.endswith("xxEnd")
        assert TRUNCATED in left[0].content
        assert len(left[0].content) < 1_100
        # A copy: the stored turn is as it was.
        assert len(asked.content) == 50_008
        assert left[1] is answer

    def test_pictures_go_before_words(self) -> None:
        [asked] = turns("u")
        asked.parts = [{"type": "text", "text": "u1"}, {"type": "image_url", "image_url": {"url": "x" * 40_000}}]
        assert window.cost([asked]) > 10_000
        [left] = window.trim([asked], max_tokens=8_000, max_rounds=10)
        assert (left.content, left.parts) == ("u1", None)
        asked.parts[1]["image_url"]["url"] = "https://example.org/x.png"
        assert window.trim([asked], max_tokens=8_000, max_rounds=10) == [asked]
        assert asked.parts is not None


def said(role: str, content: str = "", **over: Any) -> Turn:
    return Turn(role=role, content=content, parts=None, **over)


def call(name: str) -> dict[str, Any]:
    return CALL | {"id": name}


TOOLS: dict[str, tuple[list[Turn], list[dict[str, Any]]]] = {
    "plain": (
        [said("user", "Hi", name="Ana"), said("assistant", "Hello")],
        [{"role": "user", "content": "Hi", "name": "Ana"}, {"role": "assistant", "content": "Hello"}],
    ),
    "a call and its answer": (
        [said("assistant", tool_calls=[call("c1")]), said("tool", "4", tool_call_id="c1"), said("assistant", "Four")],
        [
            {"role": "assistant", "content": None, "tool_calls": [call("c1")]},
            {"role": "tool", "content": "4", "tool_call_id": "c1"},
            {"role": "assistant", "content": "Four"},
        ],
    ),
    "answers out of order": (
        [
            said("assistant", "Let me see", tool_calls=[call("c1"), call("c2")]),
            said("tool", "two", tool_call_id="c2"),
            said("tool", "one", tool_call_id="c1"),
        ],
        [
            {"role": "assistant", "content": "Let me see", "tool_calls": [call("c1"), call("c2")]},
            {"role": "tool", "content": "two", "tool_call_id": "c2"},
            {"role": "tool", "content": "one", "tool_call_id": "c1"},
        ],
    ),
    "answers that name no call": (
        [
            said("assistant", tool_calls=[call("c1"), call("c2"), call("c3")]),
            said("tool", "one"),
            said("tool", "two", tool_call_id="c2"),
            said("tool", "three"),
        ],
        [
            {"role": "assistant", "content": None, "tool_calls": [call("c1"), call("c2"), call("c3")]},
            {"role": "tool", "content": "one", "tool_call_id": "c1"},
            {"role": "tool", "content": "two", "tool_call_id": "c2"},
            {"role": "tool", "content": "three", "tool_call_id": "c3"},
        ],
    ),
    "an answer without a call": (
        [said("tool", "4", tool_call_id="c1"), said("user", "Hi"), said("tool", "5", tool_call_id="c1")],
        [{"role": "user", "content": "Hi"}],
    ),
    "an answer to another call, and one too many": (
        [
            said("assistant", tool_calls=[call("c1")]),
            said("tool", "1", tool_call_id="c1"),
            said("tool", "2", tool_call_id="c1"),
            said("tool", "3", tool_call_id="c9"),
            said("tool", "4"),
        ],
        [
            {"role": "assistant", "content": None, "tool_calls": [call("c1")]},
            {"role": "tool", "content": "1", "tool_call_id": "c1"},
        ],
    ),
    "a call under way": (
        [said("user", "Look"), said("assistant", tool_calls=[call("c1")])],
        [
            {"role": "user", "content": "Look"},
            {"role": "assistant", "content": None, "tool_calls": [call("c1")]},
        ],
    ),
    "calls that nobody answered": (
        [
            said("assistant", tool_calls=[call("c1")]),
            said("assistant", "I look", tool_calls=[call("c2"), call("c3")]),
            said("tool", "3", tool_call_id="c3"),
            said("user", "Well?"),
        ],
        [
            {"role": "assistant", "content": "I look", "tool_calls": [call("c3")]},
            {"role": "tool", "content": "3", "tool_call_id": "c3"},
            {"role": "user", "content": "Well?"},
        ],
    ),
    "calls of another shape": (
        [said("assistant", "a", tool_calls=["x", {"id": 5}, {}]), said("tool", "4"), said("user", "b")],
        [{"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}],
    ),
    "an empty reply": ([said("assistant", ""), said("user", "b")], [{"role": "user", "content": "b"}]),
}


@pytest.mark.parametrize("name", TOOLS)
def test_messages(name: str) -> None:
    given_turns, expected = TOOLS[name]
    assert window.messages_of(given_turns) == expected


def test_parts_come_as_they_were_posted() -> None:
    parts = [{"type": "text", "text": "See"}, {"type": "image_url", "image_url": {"url": "https://example.org/x.png"}}]
    turn = Turn(role="user", content="See", parts=parts)
    assert window.messages_of([turn]) == [{"role": "user", "content": parts}]
