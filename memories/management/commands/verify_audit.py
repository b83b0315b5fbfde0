"""`manage.py verify_audit`: recomputes the chains of the audit trail and names the first place that does not hold."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from memories.management import HubCommand, counted
from memories.management.arguments import tenant_of
from memories.models import Tenant
from memories.privacy.trail import chain_check


class Command(HubCommand):
    help = (
        "Recompute the seals of the audit trail with the hub's pepper, of one tenant or of all chains. Exit code 1: "
        "a chain does not hold; the first place is named."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", help="The tenant's slug; without it all chains, also of what has no tenant.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            chosen = [tenant_of(options["tenant"]).pk] if options["tenant"] else chain_check.chains()
            reports = [chain_check.check(tenant_uuid) for tenant_uuid in chosen]
        except ValueError as error:
            raise CommandError("audit-heads.json beside the ledger of erasures cannot be read.") from error
        for report in reports:
            sealed = f"{report.sealed} sealed in {counted(report.links, 'link')}"
            counts = f"{sealed}, {report.unsealed} not yet, {report.pruned} pruned"
            owner = "without a tenant"
            if report.tenant_uuid:
                slugs = Tenant.objects.filter(pk=report.tenant_uuid).values_list("slug", flat=True)
                owner = slugs.first() or str(report.tenant_uuid)
            self.stdout.write(f"{owner}: {counts}. {report.broken or 'It holds.'}")
        broken = sum(report.broken is not None for report in reports)
        if broken:
            raise CommandError(f"{broken} of {len(reports)} chains do not hold.")
        self.stdout.write(f"{counted(len(reports), 'chain holds', 'chains hold')}.")
