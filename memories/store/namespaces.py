"""Namespaces: which labels one may have, and whom it names. Pure.

A namespace is a path of labels, such as `("memories", "alice")`, stored as `memories.alice`. Patterns of a tenant say
which label is the id of an end user: `memories.{user_id}` names the second one of every namespace that begins with
`memories`.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from memories.models.memories.store_items import LONGEST_NAMESPACE

PERSON = "{user_id}"
ANY = "*"
LONGEST_PATTERN = 200
MOST_PATTERNS = 50
MOST_LABELS = 64
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_LONGEST_ID = 255
_LONGEST_SHOWN = 50


class BadNamespace(ValueError):
    """A namespace that the store cannot have; the message says why, and `at` is the place of the label."""

    def __init__(self, detail: str, at: int | None = None) -> None:
        super().__init__(detail)
        self.at = at


class Named(NamedTuple):
    """The id of a person in a namespace, and the place of its label."""

    user_id: str
    place: int


def check(labels: Sequence[object]) -> None:
    """Check labels as LangGraph does, in its words. Errors: BadNamespace."""
    if len(labels) > MOST_LABELS:
        raise BadNamespace(_TOO_LONG)
    shown = tuple(map(_cut, labels))
    for at, label in enumerate(labels):
        if not isinstance(label, str):
            kind = type(label).__name__
            raise BadNamespace(f"{_invalid(shown[at], shown)} Namespace labels must be strings, but got {kind}.", at)
        if "." in label:
            raise BadNamespace(f"{_invalid(shown[at], shown)} Namespace labels cannot contain periods ('.').", at)
        if "\x00" in label:
            raise BadNamespace(f"{_invalid(shown[at], shown)} Namespace labels cannot contain NUL bytes ('\\x00').", at)
        if not label:
            raise BadNamespace(f"Namespace labels cannot be empty strings. Got {label} in {shown}", at)
    if len(".".join(map(str, labels)).encode()) > LONGEST_NAMESPACE:
        raise BadNamespace(_TOO_LONG)


_TOO_LONG = f"A namespace can have {MOST_LABELS} labels and {LONGEST_NAMESPACE:,} bytes."


def _cut(label: object) -> object:
    """The label as an error shows it: an answer does not repeat megabytes."""
    shown = label if isinstance(label, str) else repr(label)
    if len(shown) <= LONGEST_NAMESPACE:
        return label
    return f"{shown[:_LONGEST_SHOWN]}…"


def _invalid(label: object, labels: tuple[object, ...]) -> str:
    return f"Invalid namespace label '{label}' found in {labels}."


def person_in(labels: Sequence[str], patterns: Sequence[str]) -> Named | None:
    """Whom the namespace names, by the first pattern that it begins with; None: nobody."""
    for pattern in patterns:
        wanted = pattern.split(".")
        if len(labels) < len(wanted):
            continue
        if all(one in (PERSON, ANY, label) for one, label in zip(wanted, labels, strict=False)):
            place = wanted.index(PERSON)
            return Named(labels[place], place)
    return None


def check_person(named: Named) -> None:
    """Whether the label can be the id of an end user. Errors: BadNamespace."""
    user_id = named.user_id
    if len(user_id) > _LONGEST_ID or not user_id.strip() or _CONTROL.search(user_id):
        detail = "This label names an end user: it needs 1 to 255 characters without control characters."
        raise BadNamespace(detail, named.place)


def is_pattern(text: str) -> bool:
    """Whether it is labels with periods between them, of which one is {user_id}."""
    labels = text.split(".")
    whole = len(text) <= LONGEST_PATTERN and all(label.strip() for label in labels) and not _CONTROL.search(text)
    return whole and labels.count(PERSON) == 1
