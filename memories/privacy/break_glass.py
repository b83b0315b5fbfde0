"""Break glass: whoever has a shell on the server can take an erasure through all steps, without a second person.

Each step is the verb that an operator would use, audited as done by a command; the receipt names the command as the one
that approved.
"""

import uuid
from datetime import datetime
from typing import Any

from memories import audit
from memories.audit import Actor
from memories.models import CaseState, IdentityCheck, PrivacyCase
from memories.privacy import cases, running

VERB = "break_glass"
WAIT_SECONDS = 300.0


def erase(*, case_id: uuid.UUID, policy: str, actor: Actor, now: datetime, releases: bool = False) -> PrivacyCase:
    """Take the case to its end, in this process or after the worker that has it, and return it.

    It is completed unless its verification failed or another worker still has it. `releases`: a legal hold is released
    first. Errors: those of the verbs (CaseHeld for a case on hold) and of the run.
    """
    case = PrivacyCase.objects.select_related("tenant").get(pk=case_id)
    audit.record(actor=actor, verb=VERB, target=case, now=now, case=case.pk)
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
    return running.carry_out(case_id=case_id, now=now, wait_seconds=WAIT_SECONDS)
