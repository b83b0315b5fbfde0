"""What the page of a privacy case shows: its steps and who took them, what is kept, the files, the trail."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memories.admin.cases.approvers import Approver, approvers
from memories.admin.cases.wording import (
    STATE_COLOURS,
    TYPE_ICONS,
    TYPES_SAY,
    WORK_SAYS,
    days_left,
    store_name,
    why_failed,
    why_other_count,
)
from memories.admin.trail.authors import Signed, names_of
from memories.admin.trail.sentences import sentence_of
from memories.models import (
    CLOSED,
    EXPORTING,
    ActorKind,
    AuditEvent,
    CaseState,
    CaseType,
    ExportState,
    Operator,
    PrivacyCase,
    PrivacyExport,
)
from memories.privacy.casework import workflow
from memories.privacy.exports.profiles import SECTIONS
from memories.privacy.trail import second_person
from memories.privacy.trail.second_person import Tie

TRAIL_SHOWN = 50
MENTIONS = "mentions"
DONE, NOW, LATER = "done", "now", "later"
_DECIDE_STEPS = ("received", "identity", "outcome")
_EXPORT_STEPS = ("received", "identity", "scope", "export", "handover")
STEPS: Mapping[str, tuple[str, ...]] = {
    CaseType.ERASURE: ("received", "identity", "scope", "approval", "run", "check", "receipt"),
    CaseType.ACCESS: _EXPORT_STEPS,
    CaseType.PORTABILITY: _EXPORT_STEPS,
    CaseType.RECTIFICATION: _DECIDE_STEPS,
    CaseType.RESTRICTION: _DECIDE_STEPS,
}
STEP_TITLES: Mapping[str, Any] = {
    "received": _("Received"),
    "identity": _("Identity"),
    "scope": _("Stored data"),
    "approval": _("Approval by a second person"),
    "run": _("Erasure"),
    "check": _("Verification"),
    "receipt": _("Receipt"),
    "export": _("Export"),
    "handover": _("Handover"),
    "outcome": _("Outcome"),
}
# States of an export that was handed over, or no longer can be.
GONE = (ExportState.TAKEN, ExportState.EXPIRED)
# Steps that a worker does.
WORK = ("run", "check", "export")


@dataclass(frozen=True)
class Signature:
    """Who took a step, and when."""

    actor_kind: str
    actor_id: str
    at: datetime | None


@dataclass(frozen=True)
class CaseStep:
    name: str
    state: str
    signature: Signature | None = None

    @property
    def title(self) -> str:
        return str(STEP_TITLES[self.name])

    @property
    def template(self) -> str:
        return f"memories/case_step_{self.name}.html"

    @property
    def is_work(self) -> bool:
        return self.name in WORK


@dataclass(frozen=True)
class StoreCounts:
    """A store: how many rows of the person it has, how many of other people name them, how many are dealt with, and why
    these are not as many as were counted.
    """

    name: str
    count: int
    mentions: int
    done: int
    why: str = ""


def shown_of(case: PrivacyCase, operator: Operator, *, now: datetime) -> dict[str, Any]:
    """All that the page shows; the number of queries does not grow with the case."""
    exports = list(case.exports.all())
    ready = next((one for one in exports if one.state == ExportState.READY), None)
    case.to_hand_over = ready is not None and ready.expires_at is not None and ready.expires_at > now
    steps, events = steps_of(case, exports), list(AuditEvent.objects.filter(case_uuid=case.pk)[:TRAIL_SHOWN])
    names = names_of([*events, *(step.signature for step in steps if step.signature)])
    return {
        **progress_of(case, steps, now=now),
        "person": case.find_person(),
        "type_icon": TYPE_ICONS[case.type],
        "type_says": TYPES_SAY[case.type],
        "signed": [(step, _who(names, step.signature)) for step in steps],
        "exports": exports,
        "ready": ready,
        "trail": [(event, _sentence(_who(names, event), event), _counted(event)) for event in events],
        "may_not_approve": why_not_approve(case, operator, now=now),
        "approvers": _approvers(case, now=now),
        "ties": [Tie(tie).label for tie in second_person.ties_of(case)],
        "is_hold_over": bool(case.hold_review_on and case.hold_review_on <= timezone.localdate(now)),
    }


def progress_of(case: PrivacyCase, steps: Sequence[CaseStep], *, now: datetime) -> dict[str, Any]:
    """What changes while a worker is at it: state, step, counts."""
    rows = _store_counts(case)
    return {
        "case": case,
        "steps": steps,
        "left": days_left(case, now=now),
        "state_colour": STATE_COLOURS[case.state],
        "verbs": workflow.verbs_of(case),
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


def _store_counts(case: PrivacyCase) -> list[StoreCounts]:
    """The stores that hold anything, the fullest first."""
    # Rows of other people that name the person were counted by place, like memories.Turn.content.
    mentions: Counter[str] = Counter()
    for place, count in (case.preview.get(MENTIONS) or {}).items():
        mentions[_store_of(place)] += count
    held = {label: count for label, count in case.preview.items() if label != MENTIONS}
    # Label of each store → rows deleted, or in the file, whose lists have names of their own.
    stores = {section.name: section.store for section in SECTIONS}
    done: Counter[str] = Counter()
    for name, count in case.counts.items():
        done[stores.get(name, name) if case.type in EXPORTING else name] += count
    rows = [
        StoreCounts(
            store_name(label),
            held.get(label, 0),
            mentions[label],
            done[label],
            why_other_count(case, label, held.get(label, 0), done[label]),
        )
        for label in dict.fromkeys([*held, *mentions, *done])
    ]
    filled = [row for row in rows if row.count or row.mentions or row.done]
    return sorted(filled, key=lambda row: (-row.count, row.name))


def why_not_approve(case: PrivacyCase, operator: Operator, *, now: datetime) -> str:
    """A code of why this operator may not approve the case; "" if they may.

    The second person must not be the first, nor use an account that the first one made.
    """
    first = second_person.first_of(case)
    if first == str(operator.pk):
        return "opened" if case.opened_kind == ActorKind.OPERATOR else "verified"
    waits = case.type == CaseType.ERASURE and case.state == CaseState.SCOPED
    return "own" if waits and first and second_person.is_own_of(first, str(operator.pk), at=now) else ""


def _approvers(case: PrivacyCase, *, now: datetime) -> list[Approver] | None:
    """Who can approve it; None once it is approved, and where nobody has to."""
    if case.type != CaseType.ERASURE or case.approved_at or case.state in CLOSED:
        return None
    return approvers(second_person.first_of(case), case.tenant, now=now)


def _places(found: Mapping[str, int]) -> list[tuple[str, str, int]]:
    """Each place with the name of its store; a place is like memories.Turn.content."""
    return [(place, store_name(_store_of(place)), count) for place, count in sorted(found.items())]


def _store_of(place: str) -> str:
    """memories.Turn.content → memories.Turn, files:exports → files."""
    return ".".join(place.partition(":")[0].split(".")[:2])


def steps_of(case: PrivacyCase, exports: Sequence[PrivacyExport]) -> list[CaseStep]:
    """The steps of the type of the case in their order; at most one is next, none if the case is refused."""
    names = STEPS[case.type]
    is_over = case.state == CaseState.COMPLETED
    was_found = case.state == CaseState.FAILED and bool(case.findings)
    # An export need not be counted before.
    was_passed = case.type in EXPORTING and case.state in (CaseState.RUNNING, CaseState.FAILED, CaseState.COMPLETED)
    done = {
        "received": True,
        "identity": case.verified_at is not None,
        "scope": case.scoped_at is not None or was_passed,
        "approval": case.approved_at is not None,
        "run": is_over or was_found or case.state == CaseState.VERIFYING,
        "handover": is_over and all(one.state in GONE for one in exports),
        **dict.fromkeys(("check", "receipt", "export", "outcome"), is_over),
    }
    is_done = [done[name] for name in names]
    following = is_done.index(False) if False in is_done and case.state != CaseState.REFUSED else len(names)
    states = [DONE if one else NOW if place == following else LATER for place, one in enumerate(is_done)]
    return [CaseStep(name, state, _signature(case, name)) for name, state in zip(names, states, strict=True)]


def _signature(case: PrivacyCase, name: str) -> Signature | None:
    if name == "received":
        return Signature(case.opened_kind, case.opened_by, case.created_at)
    if name == "identity" and case.verified_at:
        return Signature(case.verified_kind, case.verified_by, case.verified_at)
    if name == "approval" and case.approved_at:
        return Signature(case.approved_kind, case.approved_by, case.approved_at)
    if name == "scope" and case.scoped_at:
        return Signature("", "", case.scoped_at)
    if name in ("receipt", "outcome", "export") and case.completed_at and case.state in CLOSED:
        return Signature("", "", case.completed_at)
    return None


def _sentence(who: str, event: AuditEvent) -> str:
    if event.actor_kind == ActorKind.RUN:
        who = gettext("The worker")
    return sentence_of(who=who, verb=event.verb, object_type=PrivacyCase.__name__)


def _counted(event: AuditEvent) -> list[tuple[str, int]]:
    """The counts of an event, which are by stores or by sections of a file, in words; without what there is none of."""
    return [(store_name(name), count) for name, count in event.counts.items() if count]


def _who(names: Mapping[str, str], signed: Signed | None) -> str:
    if signed is None or not signed.actor_kind:
        return ""
    if signed.actor_kind == ActorKind.RUN:
        return gettext("the run")
    return names.get(signed.actor_id, str(ActorKind(signed.actor_kind).label))
