"""The way of a privacy case as its page shows it: what is done, what is next, what is still to come; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext_lazy

from memories.models import CLOSED, EXPORTING, CaseState, CaseType, ExportState, PrivacyCase, PrivacyExport

DONE, NOW, LATER = "done", "now", "later"
_DECIDED = ("received", "identity", "outcome")
_EXPORTED = ("received", "identity", "scope", "export", "handover")
WAYS: Mapping[str, tuple[str, ...]] = {
    CaseType.ERASURE: ("received", "identity", "scope", "approval", "run", "check", "receipt"),
    CaseType.ACCESS: _EXPORTED,
    CaseType.PORTABILITY: _EXPORTED,
    CaseType.RECTIFICATION: _DECIDED,
    CaseType.RESTRICTION: _DECIDED,
}
TITLES: Mapping[str, Any] = {
    "received": gettext_lazy("Received"),
    "identity": gettext_lazy("Identity"),
    "scope": gettext_lazy("What is kept"),
    "approval": gettext_lazy("Approval by a second person"),
    "run": gettext_lazy("Erasure"),
    "check": gettext_lazy("Search for what is left"),
    "receipt": gettext_lazy("Receipt"),
    "export": gettext_lazy("Making the file"),
    "handover": gettext_lazy("Handing it over"),
    "outcome": gettext_lazy("Outcome"),
}
# Of an export: whoever asked has it, or can have it no more.
GONE = (ExportState.TAKEN, ExportState.EXPIRED)
# What a worker does, one after the other.
WORK = ("run", "check", "export")


@dataclass(frozen=True)
class Signature:
    """Who took a step, and when."""

    actor_kind: str
    actor_id: str
    at: datetime | None


@dataclass(frozen=True)
class Step:
    name: str
    state: str
    signature: Signature | None = None

    @property
    def title(self) -> str:
        return str(TITLES[self.name])

    @property
    def template(self) -> str:
        return f"memories/case_step_{self.name}.html"

    @property
    def is_work(self) -> bool:
        return self.name in WORK


def steps_of(case: PrivacyCase, exports: Sequence[PrivacyExport]) -> list[Step]:
    """The steps of a case of its type in their order; at most one of them is next, of a refused case none."""
    names = WAYS[case.type]
    done_of = _done(case, exports)
    is_done = [done_of[name] for name in names]
    following = is_done.index(False) if False in is_done and case.state != CaseState.REFUSED else len(names)
    states = [DONE if done else NOW if place == following else LATER for place, done in enumerate(is_done)]
    return [Step(name, state, _signature(case, name)) for name, state in zip(names, states, strict=True)]


def _done(case: PrivacyCase, exports: Sequence[PrivacyExport]) -> Mapping[str, bool]:
    """Which steps are behind the case."""
    is_over = case.state == CaseState.COMPLETED
    was_found = case.state == CaseState.FAILED and bool(case.findings)
    # An export need not be counted before.
    was_passed = case.type in EXPORTING and case.state in (CaseState.RUNNING, CaseState.FAILED, CaseState.COMPLETED)
    return {
        "received": True,
        "identity": case.verified_at is not None,
        "scope": case.scoped_at is not None or was_passed,
        "approval": case.approved_at is not None,
        "run": is_over or was_found or case.state == CaseState.VERIFYING,
        "handover": is_over and all(one.state in GONE for one in exports),
        **dict.fromkeys(("check", "receipt", "export", "outcome"), is_over),
    }


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
