"""Which content policy a tenant has, and what it says of a text: everybody who stores texts asks here.

A version never changes, so a process keeps those that it has read. A tenant without a policy costs nothing.
"""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from memories.content_policy import categories, drops
from memories.content_policy.drops import Drop
from memories.content_policy.wording import Wordings
from memories.exceptions import ContentForbidden
from memories.llm.prompts.memory_update import ForbiddenTopic
from memories.models import ContentPolicy, Tenant
from memories.models.content_policy import Road
from memories.models.folding import fold
from memories.text import sentences

# Of processes that serve many tenants.
_KEPT = 128


@dataclass(frozen=True)
class PolicyInForce:
    """A version of a tenant's policy, ready to judge."""

    tenant_id: uuid.UUID
    version: int
    wordings: Wordings
    # The categories as a prompt tells them.
    topics: list[ForbiddenTopic]

    @property
    def categories(self) -> list[str]:
        return [one.name for one in self.wordings.wordings]

    def drop(self, category: str, road: Road) -> Drop:
        """What is counted of a text that was dropped."""
        return Drop(self.version, category, road)

    def forbids(self, *texts: str, named: str = "") -> str:
        """The name of the category that forbids one of these texts, or an empty text.

        `named` is the category that a model gives: it counts unless an allowed example has what the first text says.
        """
        if found := self.wordings.falls_under(text for text in texts if text):
            return found
        meant = next((name for name in self.categories if named and fold(name) == fold(named)), "")
        return "" if meant and self.wordings.excuses(meant, texts[0]) else meant

    def without(self, text: str) -> tuple[str, list[str]]:
        """The text without the sentences that fall under a category, and the categories of these."""
        spans = list(sentences.spans(text))
        found = [self.forbids(text[start:end]) for start, end in spans]
        if not any(found):
            return text, []
        kept = [text[start:end] for (start, end), category in zip(spans, found, strict=True) if not category]
        return " ".join(kept), [category for category in found if category]


def in_force(tenant: Tenant) -> PolicyInForce | None:
    """The tenant's policy; None where it has none, or one without categories."""
    if not tenant.policy_version:
        return None
    found = _read(tenant.pk, tenant.policy_version)
    return found if found.categories else None


def in_force_now(tenant: Tenant) -> PolicyInForce | None:
    """The same by the row as it is now: what takes long began under another version."""
    version = Tenant.objects.filter(pk=tenant.pk).values_list("policy_version", flat=True).first()
    tenant.policy_version = version or 0
    return in_force(tenant)


def check(tenant: Tenant, road: Road, texts: Iterable[str]) -> None:
    """Errors: ContentForbidden, where the policy forbids one of these texts; it is counted."""
    policy = in_force(tenant)
    if policy and (category := policy.forbids(*texts)):
        drops.note(tenant.pk, policy.drop(category, road))
        raise ContentForbidden(category=category, version=policy.version)


@lru_cache(maxsize=_KEPT)
def _read(tenant_id: uuid.UUID, version: int) -> PolicyInForce:
    row = ContentPolicy.objects.filter(tenant=tenant_id, version=version).first()
    found = row.categories if row else []
    topics = [ForbiddenTopic(**{name: one[name] for name in ForbiddenTopic.__annotations__}) for one in found]  # type: ignore[typeddict-item]
    return PolicyInForce(tenant_id, version, Wordings(categories.wordings(found)), topics)
