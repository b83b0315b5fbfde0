"""How large a conversation may be: checked before anything is built of it, looked up or sent on. A request beyond these
is refused as a whole: the endpoint would answer it, and the hub could not keep it."""

from typing import Any

from memories.api.parsers import measure
from memories.exceptions import InvalidInput
from memories.gateway.dialects import ChatRequest
from memories.gateway.documents import UnreadableDocument, read_object
from memories.text.secrets import effort, redaction

# Values of the document, its lists and objects among them: some thousand messages with calls of tools.
MOST_VALUES = 100_000
MOST_MESSAGES = 5_000
# Texts of so many bytes cannot have more than may be looked through (text/secrets/effort.py).
_HARMLESS_BYTES = 60_000


class TooLarge(Exception):
    """The message says what the request has too much of."""


def document_of(body: bytes) -> dict[str, Any]:
    """The object in the body. Errors: TooLarge, UnreadableDocument."""
    try:
        measure(body, most=MOST_VALUES)
    except InvalidInput as error:
        [fault] = error.faults
        if fault.code == "max_values":
            raise TooLarge(f"A request may have {MOST_VALUES:,} values in its lists and objects.") from None
        raise UnreadableDocument(fault.detail) from None
    return read_object(body)


def check(asked: ChatRequest, size: int) -> None:
    """Whether the hub can keep what the request of so many bytes says. Errors: TooLarge, TooManySecrets."""
    if len(asked.messages) > MOST_MESSAGES:
        raise TooLarge(f"A request may have {MOST_MESSAGES:,} messages.")
    if size > _HARMLESS_BYTES:
        with effort.bounded():
            redaction.foresee(one.content for one in asked.messages)
