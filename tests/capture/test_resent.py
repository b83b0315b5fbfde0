"""Which messages of a conversation that is sent whole each time are new, and which stored turns were left."""

from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from memories.capture import resent
from memories.capture.ingest import PostedMessage
from memories.capture.resent import overlap
from memories.models import Turn
from tests import factories
from tests.each import each


@each(
    ("stored", "sent", "expected"),
    [
        ("", "a", (0, 0)),
        ("aB", "aBc", (2, 2)),
        ("aBc", "aBc", (3, 3)),
        # The client cut the beginning off, or put a summary there.
        ("aBcDeF", "eFg", (2, 6)),
        ("aBcDeF", "xeFg", (3, 6)),
        # Another answer is asked for; an earlier message was changed.
        ("aBcD", "aBc", (3, 3)),
        ("aBcD", "aBx", (2, 2)),
        ("aBcDeFgH", "cDex", (3, 5)),
        # The beginning is in the hub no more.
        ("cDeF", "aBcDeFg", (6, 4)),
        # A client that sends its newest message alone; it may say the same again.
        ("aB", "c", (0, 2)),
        ("aBaB", "a", (0, 4)),
        ("aBc", "c", (1, 3)),
        ("aB", "a", (1, 1)),
        # The same word twice is no conversation that goes on.
        ("aBcD", "xc", (0, 4)),
        # Nor does it hide where both begin alike.
        ("aXcD", "aBcE", (1, 1)),
        ("aXc", "aBc", (1, 1)),
    ],
)
def test_what_is_new_and_what_was_left(stored: str, sent: str, expected: tuple[int, int]) -> None:
    keys = [one.encode() for one in stored]
    assert overlap(keys, [[one.encode()] for one in sent], [True] * len(keys))[:2] == expected


def test_a_message_may_have_several_keys() -> None:
    assert overlap([b"a", b"b"], [[b"x", b"a"], [b"b"], [b"c"]], [True, True]) == (2, 2, 2)


@each(
    ("stored", "sent"),
    [
        # A greeting that begins each conversation, examples, and three of them in a row.
        ("Gu", "Gv"),
        ("xYuA", "xYv"),
        ("xYzWuA", "xYzWv"),
    ],
)
def test_examples_and_greetings_show_nothing(stored: str, sent: str) -> None:
    """Only what the person said, and answers that the hub passed on, tell a conversation from others."""
    keys = [one.encode() for one in stored]
    given = [[one.encode()] for one in sent]
    assert overlap(keys, given, [one in "uA" for one in stored])[:2] == (0, len(stored))
    # The positive control: the same, if the hub had passed them on.
    assert overlap(keys, given, [True] * len(keys))[:2] == (len(sent) - 1, len(sent) - 1)


@pytest.mark.django_db
def test_one_statement_finds_the_session_by_an_answer(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    """Past a system's turn, blanks, many others and a beginning that was cut off."""
    tenant = factories.tenant()
    person = factories.end_user(tenant, external_id="u1")
    said = [("system", "You are kind."), ("user", "  Where do I live? "), ("assistant", "In Leiden.")]
    for number in range(6):
        factories.session(person, said if number == 2 else [("user", f"Question {number}")], session_id=f"s{number}")
    sent = [PostedMessage(role, text) for role, text in said[1:]] + [PostedMessage("user", "And since when?")]
    find = partial(resent.session_of, tenant, user_id="u1", agent_id="", now=timezone.now() + timedelta(days=1))
    assert find(messages=sent) == ""
    key = resent.answer_key(tenant, sent[:1], sent[1])
    Turn.objects.filter(content="In Leiden.").update(answer_key=key)
    with django_assert_num_queries(1):
        assert find(messages=sent) == "s2"
    summary = [PostedMessage("user", "In short so far"), PostedMessage("assistant", "Yes.")]
    assert find(messages=[*summary, *sent]) == "s2"
    assert find(messages=[PostedMessage("user", "Where do I work?"), *sent[1:]]) == ""
    assert find(messages=[]) == ""


class TestMeaning:
    """Messages are compared by what they say, not by their bytes."""

    @staticmethod
    def called(arguments: str) -> PostedMessage:
        function = {"name": "weather", "arguments": arguments}
        return PostedMessage("assistant", "", tool_calls=[{"id": "c1", "type": "function", "function": function}])

    @pytest.mark.django_db
    def test_arguments(self) -> None:
        [first, *same, other] = map(
            partial(resent.answer_key, factories.tenant(), [PostedMessage("user", "Weather?")]),
            map(self.called, ('{"a": 1, "b": [2]}', '{"b":[2],"a":1}', '{"a": 1,\n"b": [2]}', '{"a": 1, "b": [3]}')),
        )
        assert set(same) == {first} != {other}

    @pytest.mark.django_db
    def test_blanks(self) -> None:
        given = ("See this\n\nand that", "See this and that ", "See this andthat")
        first, second, third = map(
            partial(resent.answer_key, factories.tenant(), [PostedMessage("user", "Weather?")]),
            [PostedMessage("assistant", text) for text in given],
        )
        assert first == second != third
