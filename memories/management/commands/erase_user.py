"""`manage.py erase_user`: erases a person without a second person's approval. Prints the path of the receipt."""

from argparse import ArgumentParser
from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.db import DatabaseError
from django.db.models import QuerySet
from django.utils import timezone

from memories import conf
from memories.audit import Actor
from memories.exceptions import MemoryHubError
from memories.management import HubCommand
from memories.management.arguments import external_id, no_such_person, tenant_of
from memories.models import ActorKind, CaseState, CaseType, EndUser, PrivacyCase, ReturnPolicy, Tenant, Tombstone
from memories.privacy import break_glass, cases, receipts
from memories.privacy.casework.restriction import cases_of

CHANNEL = "command"
# States after the approval. The command goes on with such a case: another one would find nothing to erase.
BEGUN = (CaseState.APPROVED, CaseState.RUNNING, CaseState.VERIFYING, CaseState.FAILED)


class Command(HubCommand):
    help = (
        "Erase a person and all that is kept of them, at once and without a second person's approval; the trail says "
        "so. Works beside a running hub and without one, and asks no model. Prints the path of the receipt alone."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, help="The tenant's slug.")
        parser.add_argument("--user", type=external_id, required=True, help="The caller's user_id.")
        parser.add_argument(
            "--policy",
            choices=ReturnPolicy.values,
            default=str(ReturnPolicy.FLAG),
            help="What happens when somebody comes under the id again (flag: taken, and staff see it).",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        tenant, now = tenant_of(options["tenant"]), timezone.now()
        person = EndUser.objects.called(tenant, options["user"]).first()
        actor = Actor(kind=ActorKind.COMMAND)
        try:
            found = (
                _case_of(person, options["user"], actor=actor, now=now)
                if person
                else _unfinished(tenant, options["user"])
            )
            if found is None:
                self.stdout.write(str(self._earlier(tenant, options["user"])))
                return
            case = break_glass.erase(case_id=found.pk, policy=options["policy"], actor=actor, now=now)
        except (MemoryHubError, DatabaseError, OSError) as error:
            reason = error.detail if isinstance(error, MemoryHubError) else type(error).__name__
            raise CommandError(f"The person is not erased yet: {reason} Run it again, it goes on.") from error
        if case.state == CaseState.FAILED:
            places = ", ".join(case.findings.get("hits", {})) or "see the log"
            raise CommandError(f"Case {case.pk} failed ({case.failure}: {places}). Run this again when that is gone.")
        if case.state != CaseState.COMPLETED:
            raise CommandError(f"Case {case.pk} is still under way: run this again, it waits for it.")
        self.stdout.write(str(receipts.write_files(case)))

    def _earlier(self, tenant: Tenant, user_id: str) -> Path:
        """The receipt of an earlier person with this id. Errors: CommandError when there was none."""
        digest = conf.digest_of_person(tenant.pk, user_id)
        tombstone = Tombstone.objects.filter(tenant=tenant, digest=digest).first()
        if tombstone is None:
            raise no_such_person(tenant, user_id)
        case = PrivacyCase.objects.filter(pk=tombstone.case_uuid).exclude(signature="").first()
        if case is None:
            raise CommandError(f"Erased before, as case {tombstone.case_uuid}; its receipt is not in this database.")
        self.stderr.write(f"Erased before, on {tombstone.created_at:%Y-%m-%d}: nothing is left to erase.")
        return receipts.write_files(case)


def _case_of(person: EndUser, user_id: str, *, actor: Actor, now: datetime) -> PrivacyCase:
    """The open case that erases them, or a new one. Errors: CommandError for a legal hold."""
    opened = cases_of(person).open()
    _require_no_hold(opened)
    return opened.filter(type=CaseType.ERASURE, state__in=BEGUN).first() or cases.open_case(
        tenant=person.tenant, user_id=user_id, type=CaseType.ERASURE, channel=CHANNEL, actor=actor, now=now
    )


def _unfinished(tenant: Tenant, user_id: str) -> PrivacyCase | None:
    """The case that has taken an earlier person with this id and is not over: it was cut off, or found something left.

    Errors: CommandError for a legal hold.
    """
    stones = Tombstone.objects.filter(tenant=tenant, digest=conf.digest_of_person(tenant.pk, user_id))
    taken = PrivacyCase.objects.filter(pk__in=stones.values("case_uuid"))
    _require_no_hold(taken)
    return taken.filter(state__in=BEGUN).first()


def _require_no_hold(found: QuerySet[PrivacyCase]) -> None:
    if held := found.filter(state=CaseState.ON_HOLD).first():
        raise CommandError(f"Case {held.pk} of this person is on hold: release it first, in the admin.")
