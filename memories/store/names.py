"""Namespaces and keys as the store keeps them: without secrets and invisible characters.

Reads and writes name an item by what its caller calls it, so both are changed alike. The label that names a person
stays as it is: it is an id.
"""

import re
from collections.abc import Sequence

from memories.conf import pepper
from memories.exceptions import InvalidInput
from memories.invisible import strip_invisible
from memories.models.memories.store_items import LONGEST_KEY
from memories.store import namespaces
from memories.store.namespaces import BadNamespace
from memories.text.injection import detection
from memories.text.secrets.redaction import redact_text
from memories.text.secrets.scrubbing import scrubbed_text

# So that names that differ in their secret alone stay apart: hexadecimal digits of a keyed hash.
_DIGITS = 12
_SIGNS = re.compile(r"[/_\-]+")


def kept_labels(labels: Sequence[str], patterns: Sequence[str], *, at: str) -> tuple[str, ...]:
    """The labels as they are stored; `at` is their place in the request. Errors: InvalidInput, TooManySecrets."""
    named = namespaces.person_in(labels, patterns)
    place = named.place if named else None
    kept = tuple(label if number == place else _kept(label) for number, label in enumerate(labels))
    try:
        namespaces.check(kept)
    except BadNamespace as error:
        pointer = at if error.at is None else f"{at}/{error.at}"
        raise InvalidInput.at(pointer, str(error), code="namespace") from error
    return kept


def kept_key(key: str, *, at: str) -> str:
    """The key as it is stored. Errors: InvalidInput, TooManySecrets."""
    kept = _kept(key)
    if len(kept.encode()) > LONGEST_KEY:
        raise InvalidInput.at(at, f"A key can have {LONGEST_KEY} bytes.", code="bytes")
    return kept


def kept_path(path: str) -> str:
    """A path into a value, whose names are kept like this. Errors: TooManySecrets."""
    return scrubbed_text(path)


def speak_to_model(labels: Sequence[str], key: str, patterns: Sequence[str]) -> bool:
    """Whether the key or the labels do, but for the one that names a person: agents read them beside the value."""
    named = namespaces.person_in(labels, patterns)
    path = " ".join(label for number, label in enumerate(labels) if not named or number != named.place)
    texts = (_SIGNS.sub(" ", text).strip() for text in (key, path, f"{path} {key}"))
    return detection.are_meant_for_model(*dict.fromkeys(filter(None, texts)))


def _kept(name: str) -> str:
    visible = strip_invisible(name)
    redacted, count = redact_text(visible)
    return f"{redacted}~{pepper.digest('store_name', visible.encode()).hex()[:_DIGITS]}" if count else visible
