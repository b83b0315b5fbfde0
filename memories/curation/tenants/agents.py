"""Saves what operators set for an agent."""

from datetime import datetime

from django.db import transaction
from django.db.models import F

from memories import audit
from memories.audit import Actor
from memories.models import Agent, SessionQueue, Tenant
from memories.text.secrets.redaction import redact_text

_SETTINGS = ["extraction", "recall", "guidance"]


def save_agent(*, agent: Agent, actor: Actor, now: datetime) -> Agent:
    """Save an agent that a form changed, without secrets; other guidance is a new version of its tenant's."""
    agent.guidance = redact_text(agent.guidance)[0]
    with transaction.atomic():
        previous = Agent.objects.select_for_update().get(pk=agent.pk)
        agent.save(update_fields=_SETTINGS)
        if previous.guidance != agent.guidance:
            Tenant.objects.filter(pk=agent.tenant_id).update(guidance_version=F("guidance_version") + 1)
        if agent.extraction and not previous.extraction:
            _let_go_on(agent)
        changed = [name for name in _SETTINGS if getattr(previous, name) != getattr(agent, name)]
        audit.record(
            actor=actor,
            verb="update",
            target=agent,
            object_id=agent.pk,
            tenant=agent.tenant,
            now=now,
            counts=dict.fromkeys(changed, 1),
        )
    return agent


def _let_go_on(agent: Agent) -> None:
    """What waited is armed anew, a few sessions at a time (queue/rearming.py): no worker has neglected it."""
    waiting = SessionQueue.objects.unclaimed().filter(
        session__tenant=agent.tenant_id, session__agent_id=agent.agent_id, pending_user=True, due_at__isnull=False
    )
    waiting.update(due_at=None, woken_at=None)
