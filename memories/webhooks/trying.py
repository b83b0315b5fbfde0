"""Tries an address before a webhook is added: one signed event of the type `test`, which says nothing of anybody.

It goes the way of every delivery, past the same guard of private networks. Nothing is stored.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from time import perf_counter

from django.utils.translation import gettext as _

from memories.exceptions import Conflict, InvalidInput
from memories.llm.addresses import AddressRefused, check_address
from memories.models import Event
from memories.models.ids import new_id
from memories.webhooks import delivering, messages
from memories.webhooks.delivering import DeliveryResult

# So much of the answer is shown.
LONGEST_ANSWER = 200
# A thread of the web server waits: one at a time.
_trying = Lock()


@dataclass(frozen=True)
class AddressTest:
    """What came of it, after how long, and how the answer begins."""

    result: DeliveryResult
    milliseconds: int
    answer: str = ""


def try_address(url: str, *, now: datetime) -> AddressTest:
    """Send the event, signed with a secret that nobody has: the webhook's own is made when it is added.

    Waits at most delivering.SECONDS. Errors: InvalidInput at `url`; Conflict while another test runs.
    """
    try:
        check_address(url)
    except AddressRefused as refused:
        raise InvalidInput.at("url", str(refused), code=refused.code) from None
    if not _trying.acquire(blocking=False):
        raise Conflict(_("Another test is running. Try again in a few seconds."))
    event = {"type": Event.TEST, "timestamp": now.isoformat(), "data": {}}
    body = json.dumps(event, separators=(",", ":")).encode()
    headers = messages.headers(f"msg_{new_id().hex}", body, signed_by=[messages.new_secret()], now=now)
    began = perf_counter()
    try:
        result, answer = delivering.post(url, body, headers, shown=LONGEST_ANSWER)
    finally:
        _trying.release()
    return AddressTest(result, round(1_000 * (perf_counter() - began)), answer)
