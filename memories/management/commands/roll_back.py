"""`manage.py roll_back`: reverts what came of a session, an agent, a key or a time. Only counts without --confirm."""

from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError
from django.utils import timezone

from memories.audit import Actor
from memories.curation.rollback.roll_back import preview_rollback, roll_back
from memories.curation.rollback.selection import Selector
from memories.kinds import PLAIN
from memories.management import HubCommand
from memories.management.arguments import external_id, moment, person_of, tenant_of
from memories.models import ActorKind, APIKey, Session, Tenant

LABELS = {
    "trashed": "Facts to the trash",
    "put_back": "Facts put back to what they were",
    "sections": "Profile sections put back",
    "files": "Memory files put back, or to the trash",
    **{kind.plural: str(kind.plain.trashed) for kind in PLAIN if kind.plain},
    "group_facts": "Statements in groups to the trash",
    "triples": "Graph triples undone",
    "patterns": "Patterns withdrawn",
    "dreams": "Dreams to look at",
    "kept": "Kept, as an operator's word or changed since",
}


class Command(HubCommand):
    help = (
        "Take back what came of a session, an agent, a key or a time. Without --confirm it only says what it would do."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, help="The tenant's slug.")
        parser.add_argument("--user", type=external_id, help="Only of this person: the caller's user_id.")
        parser.add_argument("--session", help="The hub's id of a session.")
        parser.add_argument("--agent", default="", help="All sessions with this agent.")
        parser.add_argument("--key", help="The prefix of an API key: what it posted and stated.")
        parser.add_argument("--since", type=moment, help="Extracted at or after, like 2026-11-03T09:00:00Z.")
        parser.add_argument("--until", type=moment, help="Extracted before.")
        parser.add_argument("--reason", default="", help="Kept with every change.")
        parser.add_argument("--confirm", action="store_true", help="Do it.")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = tenant_of(options["tenant"])
        if not any(options[name] for name in ("session", "agent", "key", "since", "until")):
            raise CommandError("Name at least one of --session, --agent, --key, --since and --until.")
        selector = Selector(
            tenant=tenant,
            end_user=person_of(tenant, options["user"]) if options["user"] else None,
            session=_found(Session, "session", tenant, pk=options["session"]).pk if options["session"] else None,
            agent_id=options["agent"].lower(),
            key=_found(APIKey, "API key", tenant, prefix=options["key"]).pk if options["key"] else None,
            since=options["since"],
            until=options["until"],
        )
        if not options["confirm"]:
            self._write_counts(preview_rollback(selector).counts)
            self.stdout.write("Nothing is changed yet: say --confirm to do it.")
            return
        actor = Actor(kind=ActorKind.COMMAND)
        done = roll_back(selector=selector, actor=actor, now=timezone.now(), reason=options["reason"])
        self._write_counts(done.counts)
        self.stdout.write(f"Done as {done.id}.")

    def _write_counts(self, counts: dict[str, int]) -> None:
        for name, label in LABELS.items():
            if counts.get(name) or name == "trashed":
                self.stdout.write(f"{label}: {counts[name]:,}")


def _found(model: Any, what: str, tenant: Tenant, **named: str) -> Any:
    try:
        return model.objects.get(tenant=tenant, **named)
    except (model.DoesNotExist, ValidationError):
        [given] = named.values()
        raise CommandError(f"There is no {what} {given} in the tenant {tenant.slug}.") from None
