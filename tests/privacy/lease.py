"""Cases to export, claimed as workers do; and stand-ins for what stands beside the exports, where it is missing."""

import sys
import uuid
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import pytest

from memories.exceptions import LeaseLost
from memories.models import CaseState, PrivacyCase
from memories.privacy import export_lease


@dataclass
class Claimed:
    """A case that is ours while its row has the token."""

    case: PrivacyCase
    token: uuid.UUID = field(default_factory=uuid.uuid4)
    counts: Counter[str] = field(default_factory=Counter)


def claimed(case: PrivacyCase) -> Any:
    """The case at work under a lease of ours."""
    PrivacyCase.objects.filter(pk=case.pk).update(state=CaseState.RUNNING)
    work = export_lease.running().claim(case.pk)
    assert work
    return work


def claim(case_id: uuid.UUID) -> Claimed:
    work = Claimed(PrivacyCase.objects.get(pk=case_id))
    PrivacyCase.objects.filter(pk=case_id).update(lease_token=work.token)
    return work


def keep(work: Claimed, **changes: Any) -> None:
    rows = PrivacyCase.objects.filter(pk=work.case.pk, lease_token=work.token, state=CaseState.RUNNING)
    if not rows.update(counts=dict(work.counts), **changes):
        raise LeaseLost


def fail(work: Claimed, failure: str) -> None:
    keep(work, state=CaseState.FAILED, failure=failure, lease_token=None)


def finish(work: Claimed, *, now: datetime, verb: str) -> None:
    keep(work)
    work.case.state, work.case.completed_at, work.case.counts = CaseState.COMPLETED, now, dict(work.counts)
    work.case.save(force_update=True)


def issue(case: PrivacyCase, *, now: datetime) -> None:
    case.receipt, case.signature = {"case": str(case.pk)}, "signed"


def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put these in the place of modules that are not there."""
    for name, verbs in (("running", (claim, keep, fail, finish)), ("receipts", (issue,))):
        if find_spec(f"memories.privacy.{name}") is None:
            module = ModuleType(f"memories.privacy.{name}")
            for verb in verbs:
                setattr(module, verb.__name__, verb)
            monkeypatch.setitem(sys.modules, module.__name__, module)
