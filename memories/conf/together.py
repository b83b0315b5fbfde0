"""Numbers that make sense only beside others: what contradicts, and what has an effect that nobody expects; pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from memories.conf.kinds import shown
from memories.conf.table import Rules


def contradictions(rules: Rules) -> Iterator[tuple[str, str]]:
    """Names of numbers that cannot stand beside the others, and why."""
    if rules.debounce_seconds > rules.max_wait_seconds:
        yield "max_wait_seconds", _shorter_than_quiet(rules.debounce_seconds)
    if rules.compaction_quiet_seconds > rules.compaction_wait_seconds:
        yield "compaction_wait_seconds", _shorter_than_quiet(rules.compaction_quiet_seconds)


def surprises(rules: Rules, own: Mapping[str, Any]) -> Iterator[str]:
    """What `rules` do that is easily missed, in plain words; `own` are the tenant's numbers among them."""
    if own.get("lease_seconds", rules.lease_seconds) < rules.lease_seconds:
        yield f"The lease is {rules.lease_seconds} s all the same: one model call may take nearly as long."
    least, told = rules.min_confidence, rules.served_confidence
    if told > least:
        yield f"Facts with a confidence of {shown(least)} to {shown(told)} are kept, and told to nobody."
    if told > rules.inferred_confidence:
        yield f"Facts without a quote count {shown(rules.inferred_confidence)} at most, so none of them is told."
    if rules.forget_below > rules.min_importance:
        yield f"Facts of an importance below {shown(rules.forget_below)} are forgotten as soon as the grace is over."
    if rules.forget_episodes_below > rules.served_importance:
        yield "Episodes are forgotten before they would stop being told."


def _shorter_than_quiet(seconds: int) -> str:
    return f"Quiet is waited for {shown(seconds)} s: the longest wait cannot be shorter."
