"""The categories of a content policy as people give them: checked, without secrets, completed from the hub's topics.

A category is {"name", "description", "words", "not_allowed", "allowed"}. What is left out of one whose name
the hub knows a topic by (health, 健康, Gesundheit) is the topic's.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypedDict

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories.content_policy.wording import Wording
from memories.exceptions import Fault, InvalidInput
from memories.models.folding import fold
from memories.text.cleaning import clean, clean_lines
from memories.text.secrets.redaction import redact_text

MOST_CATEGORIES, MOST_WORDS, MOST_EXAMPLES = 30, 300, 50
LONGEST_NAME, LONGEST_DESCRIPTION, LONGEST_WORD, LONGEST_EXAMPLE = 60, 1_000, 60, 300
LISTS = {
    "words": (MOST_WORDS, LONGEST_WORD),
    **dict.fromkeys(("not_allowed", "allowed"), (MOST_EXAMPLES, LONGEST_EXAMPLE)),
}
_DATA = Path(__file__).parent / "data" / "topics.toml"
# The hub's topics, for staff of any language; stored they have one name.
_TITLES = {
    "health": gettext_lazy("health"),
    "politics": gettext_lazy("politics"),
    "minors": gettext_lazy("minors"),
    "religion": gettext_lazy("religion"),
    "sexuality": gettext_lazy("sexuality"),
    "finances": gettext_lazy("finances"),
    "crime": gettext_lazy("crime"),
    "ethnicity": gettext_lazy("ethnicity"),
}


class PolicyCategory(TypedDict):
    """What may not be remembered."""

    name: str
    description: str
    words: list[str]
    not_allowed: list[str]
    allowed: list[str]


def checked(given: Sequence[Mapping[str, Any]]) -> list[PolicyCategory]:
    """The categories as they are stored. Errors: InvalidInput with all places."""
    faults: list[Fault] = []
    if len(given) > MOST_CATEGORIES:
        faults.append(_fault("/categories", _("Give at most %(most)d categories.") % {"most": MOST_CATEGORIES}))
    found = [_checked(one, f"/categories/{place}", faults) for place, one in enumerate(given[:MOST_CATEGORIES])]
    names = [fold(one["name"]) for one in found]
    for place, name in enumerate(names):
        if name and name in names[:place]:
            faults.append(_fault(f"/categories/{place}/name", _("Another category has this name.")))
    if faults:
        raise InvalidInput(faults=faults)
    return found


def templates() -> list[PolicyCategory]:
    """The hub's topics, to begin with."""
    return [{name: one[name] for name in PolicyCategory.__annotations__} for one in _topics()]  # type: ignore[misc]


def title_of(name: str) -> str:
    """A category's name as staff read it: that of a topic of the hub in their language, any other as it is."""
    return str(_TITLES.get(name, name))


def topic_names(known: Iterable[str]) -> list[str]:
    """The hub's topics that none of these categories is, in whichever language it was named."""
    taken = {topic["name"] for name in known if (topic := _topic_of(name))}
    return [one["name"] for one in _topics() if one["name"] not in taken]


def wordings(categories: Iterable[Mapping[str, Any]]) -> list[Wording]:
    """What each is told by; one without any words is told by its name, too."""
    return [
        Wording(
            one["name"],
            tuple(one.get("words") or [one["name"]]),
            tuple(one.get("not_allowed", ())),
            tuple(one.get("allowed", ())),
        )
        for one in categories
    ]


def changes(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Names of what was added, changed and removed; one that only has another place is in none of them."""
    old, new = ({one["name"]: one for one in some} for some in (before, after))
    return {
        "added": [name for name in new if name not in old],
        "changed": [name for name, one in new.items() if name in old and old[name] != one],
        "removed": [name for name in old if name not in new],
    }


def _checked(given: Mapping[str, Any], at: str, faults: list[Fault]) -> PolicyCategory:
    name = clean(redact_text(str(given.get("name") or ""))[0])
    if not 0 < len(name) <= LONGEST_NAME:
        faults.append(_fault(f"{at}/name", _("Give a name of 1 to %(most)d characters.") % {"most": LONGEST_NAME}))
    # What is left out is the hub's, where it knows the topic; an empty text or list is empty.
    topic = _topic_of(name) or {}
    told = topic.get("description") if given.get("description") is None else given["description"]
    description = clean_lines(redact_text(str(told or ""))[0])
    if len(description) > LONGEST_DESCRIPTION:
        text = _("Use at most %(most)d characters.") % {"most": LONGEST_DESCRIPTION}
        faults.append(_fault(f"{at}/description", text))
    lists = {
        field: _texts(topic.get(field) if given.get(field) is None else given[field], field, at, faults)
        for field in LISTS
    }
    return PolicyCategory(name=name, description=description, **lists)  # type: ignore[typeddict-item,no-any-return]


def _texts(given: Any, field: str, at: str, faults: list[Fault]) -> list[str]:
    most, longest = LISTS[field]
    texts = [text for text in dict.fromkeys(clean(redact_text(str(one))[0]) for one in given or ()) if text]
    if len(texts) > most:
        faults.append(_fault(f"{at}/{field}", _("Give at most %(most)d.") % {"most": most}))
    for place, text in enumerate(texts[:most]):
        if len(text) > longest:
            faults.append(_fault(f"{at}/{field}/{place}", _("Use at most %(most)d characters.") % {"most": longest}))
        elif not any(one.isalnum() for one in text):
            faults.append(_fault(f"{at}/{field}/{place}", _("Give words.")))
    return texts


def _fault(pointer: str, detail: str) -> Fault:
    return Fault(pointer, "invalid", detail)


def _topic_of(name: str) -> Mapping[str, Any] | None:
    return next((one for one in _topics() if fold(name) in map(fold, one["names"])), None)


@cache
def _topics() -> list[dict[str, Any]]:
    found = tomllib.loads(_DATA.read_text(encoding="utf-8"))["topic"]
    for one in found:
        one["name"] = one["names"][0]
        one["words"] = [word.strip() for line in one["words"] for word in line.split(",") if word.strip()]
    return list(found)
