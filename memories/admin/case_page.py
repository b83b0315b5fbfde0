"""What the page of a privacy case shows: its steps and who took them, what is kept, the files, the trail."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from memories.admin.authors import Signed, names_of, unnamed
from memories.admin.case_steps import Step, steps_of
from memories.admin.case_wording import (
    STATE_COLOURS,
    TYPE_ICONS,
    TYPES_SAY,
    WORK_SAYS,
    days_left,
    store_name,
    why_failed,
)
from memories.models import ActorKind, AuditEvent, CaseState, ExportState, Operator, PrivacyCase
from memories.privacy import cases

TRAIL_SHOWN = 50
MENTIONS = "mentions"


@dataclass(frozen=True)
class Row:
    """A store: how many rows of the person it has, how many of other people name them, how many are dealt with."""

    name: str
    count: int
    mentions: int
    done: int


@dataclass(frozen=True)
class Act:
    """A line of the trail with who did it."""

    event: AuditEvent
    actor: str


def shown_of(case: PrivacyCase, operator: Operator, *, now: datetime) -> dict[str, Any]:
    """All that the page needs, in a number of queries that does not grow."""
    exports = list(case.exports.defer("content"))
    steps, events = steps_of(case, exports), list(AuditEvent.objects.filter(case_uuid=case.pk)[:TRAIL_SHOWN])
    names = names_of([*events, *(step.signature for step in steps if step.signature)])
    return {
        **progress_of(case, steps, now=now),
        "person": case.find_person(),
        "type_icon": TYPE_ICONS[case.type],
        "type_says": TYPES_SAY[case.type],
        "signed": [(step, _who(names, step.signature)) for step in steps],
        "exports": exports,
        "ready": next((one for one in exports if one.state == ExportState.READY), None),
        "trail": [Act(event, _who(names, event)) for event in events],
        "may_not_approve": why_not_approve(case, operator),
        "is_hold_over": bool(case.hold_review_on and case.hold_review_on <= timezone.localdate(now)),
    }


def progress_of(case: PrivacyCase, steps: Sequence[Step], *, now: datetime) -> dict[str, Any]:
    """What changes by itself while a worker is at it: state, step, counts."""
    rows = rows_of(case)
    return {
        "case": case,
        "steps": steps,
        "left": days_left(case, now=now),
        "state_colour": STATE_COLOURS[case.state],
        "verbs": cases.verbs_of(case),
        "rows": rows,
        "total": sum(row.count for row in rows),
        "total_mentions": sum(row.mentions for row in rows),
        "total_done": sum(row.done for row in rows),
        "is_working": case.state in (CaseState.APPROVED, CaseState.RUNNING, CaseState.VERIFYING),
        "why_failed": why_failed(case) if case.failure else "",
        "at_work": WORK_SAYS.get(case.step, ""),
        "hits": _places(case.findings.get("hits") or {}),
        "places_with_mentions": _places(case.findings.get(MENTIONS) or {}),
    }


def rows_of(case: PrivacyCase) -> list[Row]:
    """The stores that hold anything, the most first."""
    mentions = mentions_of(case)
    held = {label: count for label, count in case.preview.items() if label != MENTIONS}
    rows = [
        Row(store_name(label), held.get(label, 0), mentions.get(label, 0), case.counts.get(label, 0))
        for label in dict.fromkeys([*held, *mentions, *case.counts])
    ]
    told = [row for row in rows if row.count or row.mentions or row.done]
    return sorted(told, key=lambda row: (-row.count, row.name))


def mentions_of(case: PrivacyCase) -> Mapping[str, int]:
    """Store → rows of other people that name the person, as they were counted by place (memories.Turn.content)."""
    found: Counter[str] = Counter()
    for place, count in (case.preview.get(MENTIONS) or {}).items():
        found[_store_of(place)] += count
    return found


def why_not_approve(case: PrivacyCase, operator: Operator) -> str:
    """Which part in the case keeps this operator from approving it: opened, verified, or "" for none."""
    if case.opened_kind == ActorKind.OPERATOR:
        return "opened" if case.opened_by == str(operator.pk) else ""
    return "verified" if case.verified_by == str(operator.pk) else ""


def _who(names: Mapping[str, str], signed: Signed | None) -> str:
    if signed is None or not signed.actor_kind:
        return ""
    if signed.actor_kind == ActorKind.RUN:
        return _("the run")
    return names.get(signed.actor_id, unnamed(signed.actor_kind))


def _places(found: Mapping[str, int]) -> list[tuple[str, str, int]]:
    """Each place with the name of its store; a place is like memories.Turn.content."""
    return [(place, store_name(_store_of(place)), count) for place, count in sorted(found.items())]


def _store_of(place: str) -> str:
    """memories.Turn.content → memories.Turn, files:exports → files."""
    return ".".join(place.partition(":")[0].split(".")[:2])
