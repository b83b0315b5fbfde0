"""Cases to export, claimed as workers do; and a stand-in for the module of the runs, where it is missing."""

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
    keep(work, state=CaseState.COMPLETED, completed_at=now, lease_token=None)
    work.case.refresh_from_db()


def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put these in the place of the module of the runs, if it is not there."""
    name = "memories.privacy.running"
    if find_spec(name) is None:
        module = ModuleType(name)
        for verb in (claim, keep, fail, finish):
            setattr(module, verb.__name__, verb)
        monkeypatch.setitem(sys.modules, name, module)
