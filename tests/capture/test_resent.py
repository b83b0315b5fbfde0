"""Which messages of a conversation that is sent whole each time are new, and which stored turns were left."""

import sys
from functools import partial

import pytest
from pytest_django import DjangoAssertNumQueries

from memories.capture import resent
from memories.capture.ingest import PostedMessage
from memories.capture.resent import overlap
from tests import factories
from tests.factories import NOW


@pytest.mark.parametrize(
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
    assert overlap(keys, [[one.encode()] for one in sent])[:2] == expected


def test_a_message_may_have_several_keys() -> None:
    assert overlap([b"a", b"b"], [[b"x", b"a"], [b"b"], [b"c"]]) == (2, 2, 2)


def test_texts_are_trimmed_in_sql_as_in_python() -> None:
    blanks = {one for one in map(chr, range(sys.maxunicode + 1)) if one.isspace()}
    assert set(resent._BLANKS) == blanks


@pytest.mark.django_db
def test_sessions_that_begin_otherwise_are_not_read(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    """One statement finds the session, past a system's turn, blanks and many others."""
    tenant = factories.tenant()
    person = factories.end_user(tenant, external_id="u1")
    said = [("system", "You are kind."), ("user", "  Where do I live? "), ("assistant", "In Leiden.")]
    for number in range(6):
        factories.session(person, said if number == 2 else [("user", f"Question {number}")], session_id=f"s{number}")
    sent = [PostedMessage(role, text) for role, text in said[1:]] + [PostedMessage("user", "And since when?")]
    find = partial(resent.session_of, tenant, user_id="u1", agent_id="", now=NOW)
    with django_assert_num_queries(1):
        assert find(messages=sent) == "s2"
    assert find(messages=[PostedMessage("user", "Where do I work?"), *sent[1:]]) == ""
    assert find(messages=[]) == ""
