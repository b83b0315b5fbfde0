"""The numbers by name, and what of a tenant's own can be used; pure."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from memories.conf.kinds import Number
from memories.conf.table import Rules

# Numbers whose hub's own the environment may set: MEMORYHUB_ and the name.
OF_THE_ENVIRONMENT = ("debounce_seconds", "max_wait_seconds", "lease_seconds", "max_attempts", "idle_seconds")
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
