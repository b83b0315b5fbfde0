"""The numbers by name, what of a tenant's own can be used, and which cannot stand beside each other; pure."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from memories.conf.kinds import Number, shown
from memories.conf.table import Rules

# Numbers whose hub's own the environment may set: MEMORYHUB_ and the name.
OF_THE_ENVIRONMENT = (
    "debounce_seconds", "max_wait_seconds", "lease_seconds", "max_attempts", "idle_seconds", "seed_files"
)  # fmt: skip
# Numbers that decide when a memory is forgotten: a change makes all those dates wrong.
FADING = frozenset({"half_life_days", "half_lives", "grace_days", "forget_below", "forget_episodes_below"})
NUMBERS: Mapping[str, Number] = {
    row.name: replace(row.metadata["number"], name=row.name) for row in fields(Rules) if row.metadata
}


def own_numbers(stored: object) -> dict[str, Any]:
    """What can be used of a tenant's numbers as they are stored: names that exist, values in their range.

    An older version or a hand may have written anything else; no request fails over that.
    """
    if not isinstance(stored, Mapping):
        return {}
    found = {name: NUMBERS[name].usable(value) for name, value in stored.items() if name in NUMBERS}
    return {name: value for name, value in found.items() if value is not None}


def unusable_numbers(stored: object) -> list[str]:
    """Names of the stored numbers that are ignored, wholly or in part; ["*"] when nothing is readable."""
    if not isinstance(stored, Mapping):
        return ["*"]
    own = own_numbers(stored)
    return [name for name, value in stored.items() if name not in own or own[name] != value]


def contradictions(rules: Rules) -> Iterator[tuple[str, str]]:
    """Names of numbers that cannot stand beside the others, and why."""
    if rules.debounce_seconds > rules.max_wait_seconds:
        yield "max_wait_seconds", _shorter_than_quiet(rules.debounce_seconds)
    if rules.compaction_quiet_seconds > rules.compaction_wait_seconds:
        yield "compaction_wait_seconds", _shorter_than_quiet(rules.compaction_quiet_seconds)


def warnings(rules: Rules, own: Mapping[str, Any]) -> Iterator[str]:
    """What `rules` do that is easily missed, in plain words; `own` are the tenant's numbers among them."""
    if own.get("lease_seconds", rules.lease_seconds) < rules.lease_seconds:
        yield f"The lease is {rules.lease_seconds} s all the same: one model call may take nearly as long."
    kept, served = rules.min_confidence, rules.served_confidence
    if served > kept:
        yield f"Facts with a confidence of {shown(kept)} to {shown(served)} are kept, and told to nobody."
    if served > rules.inferred_confidence:
        yield f"Facts without a quote count {shown(rules.inferred_confidence)} at most, so none of them is told."
    if rules.forget_below > rules.min_importance:
        yield f"Facts of an importance below {shown(rules.forget_below)} are forgotten as soon as the grace is over."
    if rules.forget_episodes_below > rules.served_importance:
        yield "Episodes are forgotten before they would stop being told."


def _shorter_than_quiet(seconds: int) -> str:
    return f"Quiet is waited for {shown(seconds)} s: the longest wait cannot be shorter."
