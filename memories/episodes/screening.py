"""What of a summary or an episode the tenant's content policy does not allow: the sentences and items that say it."""

from collections.abc import Sequence
from dataclasses import replace

from memories import content_policy
from memories.content_policy import Drop, PolicyInForce, Road
from memories.episodes.creation import Draft
from memories.models import Tenant


def screened(summary: str, draft: Draft | None, tenant: Tenant) -> tuple[str, Draft | None, list[Drop]]:
    """The running summary and the draft without what is forbidden now, and what is counted of it.

    A draft of which no sentence is left is none. No transaction is open.
    """
    policy = content_policy.in_force_now(tenant)
    if policy is None:
        return summary, draft, []
    kept, found = policy.without(summary)
    if draft:
        draft, more = _kept(draft, policy)
        found = [*found, *more]
    return kept, draft, [policy.drop(category, Road.EPISODE) for category in found]


def _kept(draft: Draft, policy: PolicyInForce) -> tuple[Draft | None, list[str]]:
    summary, found = policy.without(draft.summary)
    lists = {name: _allowed(texts, policy) for name, texts in draft.lists.items()}
    kept = replace(draft, summary=summary, lists={name: items for name, (items, _) in lists.items()})
    found = [*found, *(category for _, categories in lists.values() for category in categories)]
    return (kept if summary else None), found


def _allowed(items: Sequence[str], policy: PolicyInForce) -> tuple[list[str], list[str]]:
    found = [policy.forbids(item) for item in items]
    kept = [item for item, category in zip(items, found, strict=True) if not category]
    return kept, [category for category in found if category]
