"""What a number of the rules is: its unit, range and explanation, and which values it takes; pure."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from memories.categories import CATEGORIES


class NumberKind(StrEnum):
    WHOLE = "a whole number"
    REAL = "a number"
    SWITCH = "on or off"
    # By category; None: it never fades.
    HALF_LIVES = "days by category, or never"


@dataclass(frozen=True)
class Number:
    """One number of the rules. `zero` is what 0 means where the range begins above it."""

    kind: NumberKind
    group: "SettingGroup"
    label: str
    says: str
    lowest: float
    highest: float
    unit: str = ""
    zero: str = ""
    name: str = ""

    def takes(self, value: object) -> bool:
        """Whether a tenant may have this value; of half-lives, for one category."""
        if self.kind == NumberKind.SWITCH:
            return isinstance(value, bool)
        if self.kind == NumberKind.HALF_LIVES and value is None:
            return True
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        whole = isinstance(value, int) or self.kind != NumberKind.WHOLE
        # A comparison with NaN is false, so it is refused here too.
        return whole and (self.lowest <= value <= self.highest or (value == 0 and bool(self.zero)))

    def usable(self, value: object) -> Any:
        """As much of a stored value as can be used; None: nothing."""
        if self.kind != NumberKind.HALF_LIVES:
            return value if self.takes(value) else None
        days = value if isinstance(value, Mapping) else {}
        return {name: one for name, one in days.items() if name in CATEGORIES and self.takes(one)} or None

    @property
    def range(self) -> str:
        """Like `1–300 s`, `0–1`, `10–5,000 facts, 0: no bound`, `on or off`."""
        if self.kind == NumberKind.SWITCH:
            return str(self.kind)
        ends = f"{shown(self.lowest)}–{shown(self.highest)} {self.unit}".rstrip()
        never = ", or never" if self.kind == NumberKind.HALF_LIVES else ""
        return f"{ends}{never}" + (f", 0: {self.zero}" if self.zero else "")


class SettingGroup(StrEnum):
    """What belongs together on the page and in the documentation, with a sentence about it."""

    says: str

    def __new__(cls, title: str, says: str) -> "SettingGroup":
        group = str.__new__(cls, title)
        group._value_ = title
        group.says = says
        return group

    CAPTURE = "Capture and debounce", "When turns are sent to extraction."
    EXTRACTION = "Extraction", "How much one attempt reads and asks, and what happens when it fails."
    GATE = "Acceptance rules", "Which parts of a model's answer are kept, and how many facts a person can have."
    REVIEW = "Review", "How soon an operator should decide what a job may not."
    WINDOW = "Working memory", "How much of a running conversation is kept word for word; the rest is summarised."
    EPISODES = "Episodes", "When a conversation becomes an episode."
    DECAY = "Decay", "How fast memories fade that are not mentioned or recalled."
    FORGETTING = "Forgetting and trash", "When faded memories leave contexts, and how long they can be restored."
    SERVING = "Serving", "What contexts and searches return."
    FILES = "Memory files", "Limits of the files that agents keep about a person."
    DIARY = "Diary", "Limits of what agents note for themselves about a person."
    TRAJECTORIES = "Trajectories", "Limits of what agents tell about how they did a task."
    GROUPS = "Groups", "Limits of what groups of people share."
    DREAMS = "Dreams", "When a model brings memory files up to date; off unless it is switched on."
    SKILLS = "Skills", "When procedures are proposed from what agents did; off unless it is switched on."
    STORE = "Memory store", "How much agents can keep under namespaces and keys."
    UPKEEP = "Upkeep", "Housekeeping by the model at night; off unless it is switched on."

    RETENTION = "Retention", "After how many days a nightly pass permanently deletes data."

    def number(
        self, default: float, span: tuple[float, float], unit: str, label: str, says: str, *, zero: str = ""
    ) -> Any:
        """A field of Rules, whole or real as its default is; `span` is the lowest and the highest."""
        kind = NumberKind.WHOLE if isinstance(default, int) else NumberKind.REAL
        row = Number(kind, self, label, says, *span, unit, zero)
        return field(default=default, metadata={"number": row})

    def switch(self, label: str, says: str, *, default: bool = False) -> Any:
        """A field of Rules that is on or off."""
        return field(default=default, metadata={"number": Number(NumberKind.SWITCH, self, label, says, 0, 1)})

    def half_lives(self, default: Mapping[str, float | None], span: tuple[float, float], label: str, says: str) -> Any:
        """A field of Rules with days by category."""
        row = Number(NumberKind.HALF_LIVES, self, label, says, *span, "days")
        return field(default_factory=lambda: dict(default), metadata={"number": row})


def shown(value: object) -> str:
    """A value as people write it: `8,000`, `0.7`, `on`, `never`."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int | float) and math.isfinite(value):
        return f"{value:,.10g}" if value != int(value) else f"{int(value):,}"
    return "never" if value is None else str(value)
