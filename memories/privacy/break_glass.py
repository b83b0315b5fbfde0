"""The way past the second person: whoever has a shell on the server takes an erasure through all of its steps.

Each step is the verb that an operator would use, audited as done by a command; the approval says so on the receipt.
"""

import uuid
from datetime import datetime
from typing import Any

from memories import audit
from memories.audit import Actor
from memories.models import CaseState, IdentityCheck, PrivacyCase
from memories.privacy import cases, running

VERB = "break_glass"
PATIENCE_SECONDS = 300.0


def erase(*, case_id: uuid.UUID, policy: str, actor: Actor, now: datetime, releases: bool = False) -> PrivacyCase:
    """Take the case from where it stands to its end, in this process or after the worker that is at it; the case as it
    is then, which is completed unless its verification failed or somebody else is still at it.

    `releases`: also one on legal hold. Errors: those of the verbs (CaseHeld for one on hold) and of the run.
    """
    case = PrivacyCase.objects.select_related("tenant").get(pk=case_id)
    _note(case, actor, now)
    step: dict[str, Any] = {"case_id": case_id, "expected_version": None, "actor": actor, "now": now}
    if case.state == CaseState.ON_HOLD and releases:
        case = cases.release_case(**step)
    if case.state == CaseState.RECEIVED:
        case = cases.verify_identity(how=IdentityCheck.SHELL, **step)
    if case.state in (CaseState.VERIFIED, CaseState.SCOPED):
        cases.scope_case(policy=policy, **step)
        case = cases.approve_case(typed_id="", **step)
    if case.state in (CaseState.FAILED, CaseState.ON_HOLD):
        cases.run_case(**step)
    return running.carry_out(case_id=case_id, now=now, patience_seconds=PATIENCE_SECONDS)


def _note(case: PrivacyCase, actor: Actor, now: datetime) -> None:
    audit.record(actor=actor, verb=VERB, target=case, object_id=case.pk, tenant=case.tenant, now=now, case=case.pk)
