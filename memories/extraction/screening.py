"""What of an answer the tenant's content policy does not allow: taken out before the gate, whatever it came from.

A fact keeps its place in the answer, by which others name it; the gate refuses it. Sections lose the sentences that
fall under a category, reasons and quotes go as a whole. It is the policy of now: it may have changed meanwhile.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memories import content_policy
from memories.content_policy import Drop, PolicyInForce, Road
from memories.llm.prompts.memory_update import MemoryUpdate
from memories.models import Tenant
from memories.text import value_texts

_TEXTS = ("content", "value", "source_error", "tags", "structured", "triples")


@dataclass(frozen=True)
class Screened:
    """The answer without what is forbidden, the places of the facts that are, and what is counted of all of it.
    `version`: of the policy."""

    answer: MemoryUpdate
    version: int = 0
    forbidden: frozenset[int] = frozenset()
    dropped: list[Drop] = field(default_factory=list)


def screen(answer: MemoryUpdate, tenant: Tenant) -> Screened:
    """Hold the answer against the tenant's policy as it is now. No transaction is open."""
    policy = content_policy.in_force_now(tenant)
    if policy is None:
        return Screened(answer, tenant.policy_version)
    dropped: list[Drop] = []
    facts, forbidden = [], set()
    for place, raw in enumerate(answer.new_facts):
        facts.append(_without(raw, "quote", None, policy))
        if category := _category_of(raw, policy):
            forbidden.add(place)
            dropped.append(policy.drop(category, Road.EXTRACTION))
    sections = {name: _section(raw, policy, dropped) for name, raw in answer.profile.items()}
    reinforced, removed = (
        [_without(raw, "reason", "", policy) for raw in raws] for raws in (answer.reinforced, answer.removed)
    )
    changes = {"new_facts": facts, "profile": sections, "reinforced": reinforced, "removed": removed}
    kept = answer.model_copy(update=changes)
    return Screened(kept, tenant.policy_version, frozenset(forbidden), dropped)


def is_outdated(screened: Screened, tenant: Tenant) -> bool:
    """Whether another version of the policy came since."""
    content_policy.in_force_now(tenant)
    return tenant.policy_version != screened.version


def _category_of(raw: Any, policy: PolicyInForce) -> str:
    if not isinstance(raw, Mapping):
        return ""
    key = str(raw.get("key") or "").replace("_", " ")
    texts = [text for name in _TEXTS for text in value_texts.strings(raw.get(name))]
    named = raw.get("forbidden")
    content = str(raw.get("content") or "")
    return policy.forbids(
        content, *texts, f"{key} {raw.get('value') or ''}", named=named if isinstance(named, str) else ""
    )


def _without(raw: Any, field: str, empty: Any, policy: PolicyInForce) -> Any:
    if isinstance(raw, Mapping) and isinstance(raw.get(field), str) and policy.forbids(raw[field]):
        return {**raw, field: empty}
    return raw


def _section(raw: Any, policy: PolicyInForce, dropped: list[Drop]) -> Any:
    if not isinstance(raw, Mapping) or not isinstance(raw.get("summary"), str):
        return raw
    text, categories = policy.without(raw["summary"])
    dropped += [policy.drop(category, Road.PROFILE) for category in categories]
    return {**raw, "summary": text} if categories else raw
