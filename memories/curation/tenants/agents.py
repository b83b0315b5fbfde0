"""Changes what operators and keys set for an agent: its switches and its guidance."""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from memories import audit
from memories.audit import Actor
from memories.curation.tenants.settings import check_not_off_boarded
from memories.exceptions import NotFound, OperatorWord
from memories.models import ActorKind, Agent, SessionQueue, Tenant
from memories.text.secrets.scrubbing import scrubbed_text

_SWITCHES = ("extraction", "recall")


def change_agent(
    *, agent: Agent, changes: dict[str, Any], actor: Actor, now: datetime, by: ActorKind | None = None
) -> Agent:
    """Set switches and guidance, without secrets; other guidance is a new version of its tenant's.

    `by` says whose word it is, if not that of the actor's kind: a management key's is an operator's.

    Errors: NotFound (an erasure removed it meanwhile), Conflict when the tenant is off-boarded, OperatorWord for a key
    that switches on what an operator switched off, or that writes over an operator's guidance.
    """
    if "guidance" in changes:
        changes = {**changes, "guidance": scrubbed_text(changes["guidance"])}
    with transaction.atomic():
        # Locked, a tenant cannot be off-boarded past the change.
        tenant = Tenant.objects.select_for_update(no_key=True).filter(pk=agent.tenant_id).first()
        if tenant is None:
            raise NotFound
        check_not_off_boarded(tenant)
        rows = Agent.objects.select_for_update(of=("self",)).select_related("tenant")
        current = rows.filter(pk=agent.pk).first()
        if current is None:
            raise NotFound
        changed = {name: value for name, value in changes.items() if getattr(current, name) != value}
        for name, value in (changed | _who_set(current, changed, by or actor.kind)).items():
            setattr(current, name, value)
        current.save()
        if "guidance" in changed:
            Tenant.objects.filter(pk=current.tenant_id).update(guidance_version=F("guidance_version") + 1)
        if changed.get("extraction"):
            # What waited is armed anew, a few sessions at a time (queue/rearming.py): no worker has neglected it.
            of_agent = {"session__tenant": current.tenant_id, "session__agent_id": current.agent_id}
            waiting = SessionQueue.objects.unclaimed().filter(**of_agent, pending_user=True, due_at__isnull=False)
            waiting.update(due_at=None, woken_at=None)
        audit.record(actor=actor, verb="update", target=current, now=now, counts=dict.fromkeys(changed, 1))
    return current


def _who_set(agent: Agent, changed: dict[str, Any], by: str) -> dict[str, str]:
    """The fields that say who set what these changes set. Errors: OperatorWord."""
    who = {}
    is_key = by == ActorKind.KEY
    for name in _SWITCHES:
        if name not in changed:
            continue
        field = f"{name}_off_by"
        if changed[name] and is_key and getattr(agent, field) != ActorKind.KEY:
            raise OperatorWord(_("An operator switched this off. Only an operator can switch it on."))
        who[field] = "" if changed[name] else by
    if "guidance" in changed:
        # Also where an operator emptied it.
        is_set = agent.guidance_by or agent.guidance
        if is_key and is_set and agent.guidance_by != ActorKind.KEY:
            raise OperatorWord(_("An operator wrote this guidance. Only an operator can change it."))
        who["guidance_by"] = by
    return who
