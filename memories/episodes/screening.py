"""What of a summary or an episode the tenant's content policy does not allow: the sentences and items that say it."""

from dataclasses import replace

from memories import content_policy
from memories.content_policy import Drop, Road
from memories.episodes.creation import Draft
from memories.models import Tenant


def screened(summary: str, draft: Draft | None, tenant: Tenant) -> tuple[str, Draft | None, list[Drop]]:
    """The running summary and the draft without what is forbidden now, and what is counted of it.

    A draft of which no sentence is left is none. No transaction is open.
    """
    policy = content_policy.in_force_now(tenant)
    if policy is None:
        return summary, draft, []
    summary, forbidden = policy.without(summary)
    if draft:
        kept, categories = policy.without(draft.summary)
        lists = {}
        for name, items in draft.lists.items():
            found = [policy.forbids(item) for item in items]
            lists[name] = [item for item, category in zip(items, found, strict=True) if not category]
            categories += filter(None, found)
        draft = replace(draft, summary=kept, lists=lists) if kept else None
        forbidden = [*forbidden, *categories]
    return summary, draft, [policy.drop(category, Road.EPISODE) for category in forbidden]
