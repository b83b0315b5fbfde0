"""Which messages of a conversation that is sent whole each time are new, and which stored turns were left."""

import pytest

from memories.capture.resent import overlap


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
