"""Where blocks of memory stand in a conversation: each place is a keyed hash of the messages up to a user's message.

A client sends the whole conversation with each request, and where it changes what was said, it changes the places
behind that, too. How it writes a message makes no other place: blanks, the order of arguments, marks for a cache.
"""

import hashlib
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from memories.capture import resent
from memories.capture.authors import Judged
from memories.conf import pepper
from memories.models import Role, Tenant

SIZE = 16
# Of a conversation the newest are looked for.
MOST = 1_000


class Layout(NamedTuple):
    """`items`: place → the item of the request before which its block stands, in their order; `newest`: the place of
    what the person has just said, None where no user says anything. `goes_on`: whether a model, or a tool, has answered
    before.
    """

    items: dict[bytes, int]
    newest: bytes | None
    goes_on: bool


def layout(judged: Judged, items: Sequence[int], *, tenant: Tenant, terms: str) -> Layout:
    """The places of a request. `items`: of each message the item; `terms`: what else blocks depend on."""
    found: dict[bytes, int] = {}
    asked = items[judged.now] if judged.now is not None else None
    newest = None
    for item, digest in _places(judged, items):
        place = pepper.digest("sent block", tenant.pk.bytes, terms.encode(), digest)[:SIZE]
        found[place] = item
        # Where the person says nothing it is what a program asks last.
        newest = place if asked is None or item == asked else newest
    goes_on = any(message.role in (Role.ASSISTANT, Role.TOOL) for message in judged.messages)
    return Layout(dict(list(found.items())[-MOST:]), newest, goes_on)


def of_session(tenant: Tenant, session_id: str, *, terms: str) -> bytes:
    """What stands for a session; its stable block has it for a place."""
    return pepper.digest("sent session", tenant.pk.bytes, terms.encode(), session_id.encode())[:SIZE]


def _places(judged: Judged, items: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """Each item with words of a user, with what stands for all up to it. What a harness adds changes from request to
    request, and stands for nothing."""
    chain = hashlib.blake2b(digest_size=32)
    for item, of_item in groupby(zip(judged.messages, items, strict=True), key=itemgetter(1)):
        messages = [message for message, _ in of_item]
        said = [message for message in messages if not message.is_material]
        for message in said:
            chain.update(resent.said_key(message))
        if any(message.role == Role.USER for message in messages):
            here = chain.copy()
            for message in messages if not said else ():
                here.update(resent.said_key(message))
            yield item, here.digest()
