"""What follows from a refusal for a statement that repeats it (rules.md, 5.5). Pure."""

from collections.abc import Collection
from enum import Enum

from memories.facts.policies import Refused
from memories.models import FactRefusal
from memories.trust import Trust


class RefusalOutcome(Enum):
    """What becomes of the statement; the later in this order prevails over the earlier."""

    ALLOW = "Nothing refuses it."
    LIFT = "It is stored, and the refusal ends."
    HOLD = "It waits for review."
    DROP = "It is not stored."


def outcome(
    refusals: Collection[FactRefusal],
    *,
    rule: Refused,
    trust: Trust,
    key_id: str = "",
    is_import: bool = False,
    is_suggested: bool = False,
) -> RefusalOutcome:
    """What becomes of a statement of this trust, which the key `key_id` makes, if these refuse its text or key.

    `is_suggested`: simple rules found it, and nobody asked to remember it.
    """
    if not refusals:
        return RefusalOutcome.ALLOW
    if rule == Refused.ENDS:
        return RefusalOutcome.LIFT
    if rule == Refused.DROP:
        return RefusalOutcome.DROP
    if rule == Refused.USERS_WAITS:
        return RefusalOutcome.HOLD if trust == Trust.USER and not is_suggested else RefusalOutcome.DROP
    found = {_outcome(one, trust=trust, key_id=key_id, is_import=is_import) for one in refusals}
    return next(one for one in reversed(RefusalOutcome) if one in found)


def _outcome(refusal: FactRefusal, *, trust: Trust, key_id: str, is_import: bool) -> RefusalOutcome:
    """The user's word ends what a key refused, and so does that key's own. An import is a record of the past: it ends
    nothing. Only the user can state again what an operator refused."""
    if not refusal.by_key:
        return RefusalOutcome.HOLD if trust == Trust.USER else RefusalOutcome.DROP
    ends = not is_import and (trust == Trust.USER or refusal.actor_id == key_id)
    return RefusalOutcome.LIFT if ends else RefusalOutcome.HOLD
