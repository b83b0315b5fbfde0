"""The upkeep that follows a pass, in the same row: worked on under a lease, one at a time per tenant, going on where
another died."""

from collections import Counter
from datetime import datetime, timedelta

from django.utils.translation import gettext as _

from memories import audit, conf
from memories.llm import client
from memories.models import DecayPass
from memories.models.leases import unleased
from memories.pipeline import pass_leases
from memories.pipeline.decay_passes import Work

# People that a model was asked about, facts removed, facts made of others, failed calls, what of answers was not done.
COUNTED = ("reviewed", "stale", "merged", "upkeep_failures", "upkeep_refused")


def hindrance(rules: conf.Rules) -> str:
    """Why there is no upkeep; empty when there is."""
    if not (rules.staleness_review or rules.merge_crowded):
        return _("Upkeep is off: neither staleness_review nor merge_crowded is switched on.")
    return "" if client.is_configured() else _("Without a language model there is no upkeep.")


def follow(work: Work, state: DecayPass.State) -> None:
    """Open the upkeep of a nightly pass that the brake did not hold, where it is on; in the pass's last transaction."""
    is_nightly = work.row.trigger == DecayPass.Trigger.SCHEDULE and state == DecayPass.State.DONE
    if is_nightly and not hindrance(work.rules):
        begin(work.row)


def begin(row: DecayPass) -> None:
    """Open the upkeep of a finished pass; what another night left over is this one's. In the caller's transaction."""
    closed = {"upkeep_open": False, "lease_token": None, "lease_until": None}
    DecayPass.objects.filter(tenant=row.tenant_id, upkeep_open=True).exclude(pk=row.pk).update(**closed)
    DecayPass.objects.filter(pk=row.pk).update(upkeep_open=True)


def unfinished() -> list[DecayPass]:
    """Upkeeps that wait for somebody, the oldest first."""
    return list(DecayPass.objects.in_upkeep().filter(unleased()).order_by("started_at"))


def claim(row: DecayPass) -> Work | None:
    """Take the upkeep for as long as a lease, which outlasts a model's call; None when it is over, or somebody else
    works on it."""
    lease = timedelta(seconds=conf.rules(row.tenant).lease_seconds)
    work = pass_leases.claim(DecayPass.objects.in_upkeep(), row, lease=lease)
    if work:
        work.counts = Counter(dict.fromkeys(COUNTED, 0) | work.row.counts)
    return work


def finish(work: Work, *, now: datetime) -> None:
    """All were looked at that may be tonight; in the trail as counts. Errors: LeaseLost."""
    pass_leases.end(work, upkeep_open=False)
    told = {name: work.counts[name] for name in COUNTED}
    row = work.row
    audit.record(actor=work.actor, verb="upkeep", target=row, object_id=row.pk, tenant=row.tenant, now=now, counts=told)
