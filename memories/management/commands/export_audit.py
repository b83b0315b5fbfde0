"""`manage.py export_audit`: writes a tenant's audit trail as JSON lines to standard output."""

from argparse import ArgumentParser
from typing import Any

from django.utils import timezone

from memories.audit import Actor
from memories.curation.exports import note_export
from memories.management import HubCommand
from memories.management.arguments import moment, tenant_of
from memories.models import ActorKind, AuditEvent
from memories.privacy.trail import chain, trail_export


class Command(HubCommand):
    help = "Write a tenant's audit events as JSON lines, the oldest first; each names the number of its seal."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, help="The tenant's slug.")
        parser.add_argument("--since", type=moment, help="From this moment on, like 2026-11-03T09:00:00Z.")
        parser.add_argument("--until", type=moment, help="Before this moment.")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant, now = tenant_of(options["tenant"]), timezone.now()
        events = chain.of_chain(AuditEvent.objects.all(), tenant.pk)
        # The export leaves out its own event.
        chosen = trail_export.in_period(events, since=options["since"], until=options["until"] or now)
        actor = Actor(kind=ActorKind.COMMAND)
        note_export(model=AuditEvent, rows=chosen.count(), tenant=tenant, actor=actor, now=now)
        for line in trail_export.lines(chosen):
            self.stdout.write(line, ending="")
