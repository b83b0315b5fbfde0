"""What is stored of a text that somebody states outright: without secrets, and without characters that nobody sees."""

from collections.abc import Mapping
from typing import Any

from memories.invisible import strip_invisible, visible_json
from memories.text.secrets.redaction import redact_message, redact_text


def scrubbed_text(text: str, *, longest: int | None = None) -> str:
    """The text, cut where it is longer. Errors: TooManySecrets."""
    return redact_text(strip_invisible(text))[0][:longest]


def scrubbed_json(value: Mapping[str, Any]) -> dict[str, Any]:
    """The object with its names, at any depth. Errors: TooManySecrets."""
    return redact_message(content="", metadata=visible_json(dict(value))).metadata
