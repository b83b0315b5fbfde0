"""What was taken back since the moment of a restore must stay so: revoked keys, restrictions, what operators lost.

`read` finds it in the database of now, `apply` does it again in the restored one. Nothing is given: who had fewer
rights at that moment has fewer rights.
"""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.contrib.sessions.models import Session as SignIn
from django.db import transaction
from django.db.models import F, Model, Q, QuerySet

from memories.audit import Actor
from memories.curation import turns
from memories.exceptions import NotFound
from memories.models import (
    ActorKind,
    APIKey,
    EndUser,
    ManagementKey,
    Operator,
    PrivacyCase,
    Tenant,
    Turn,
    WebhookEndpoint,
)
from memories.models.privacy.cases import CLOSED
from memories.privacy import ledger, replaying

Values = dict[uuid.UUID, dict[str, Any]]


@dataclass
class Withdrawals:
    """Rows by their ids, with the values that they have now."""

    keys: Values = field(default_factory=dict)
    management_keys: Values = field(default_factory=dict)
    people: Values = field(default_factory=dict)
    tenants: Values = field(default_factory=dict)
    endpoints: Values = field(default_factory=dict)
    operators: Values = field(default_factory=dict)
    roles: dict[uuid.UUID, set[int]] = field(default_factory=dict)
    redacted: list[uuid.UUID] = field(default_factory=list)
    # Open now, and not to be found in the restored database if they were opened since.
    cases: list[tuple[uuid.UUID, str, datetime]] = field(default_factory=list)
    # Erasures that were done, and that the ledger lacks.
    unnoted: list[uuid.UUID] = field(default_factory=list)


def read(moment: datetime, entries: Iterable[ledger.LedgerEntry]) -> Withdrawals:
    """What is withdrawn in this database."""
    off = Q(capture=False) | Q(serve=False)
    restricted = Q(restricted_at__isnull=False)
    operators = Operator.objects.prefetch_related("groups")
    return Withdrawals(
        keys=_ends_of(APIKey),
        management_keys=_ends_of(ManagementKey),
        people=_values(
            EndUser.objects.filter(off | restricted),
            "restricted_at",
            "capture",
            "capture_off_by",
            "serve",
            "serve_off_by",
        ),
        tenants=_values(Tenant.objects.filter(off), "capture", "serve"),
        endpoints=_values(WebhookEndpoint.objects.exclude(disabled_at=None), "disabled_at", "disabled_for"),
        operators=_values(Operator.objects.all(), "is_active", "is_superuser", "password"),
        roles={one.pk: {group.pk for group in one.groups.all()} for one in operators},
        redacted=list(Turn.objects.filter(redacted_at__gt=moment).values_list("pk", flat=True)),
        cases=list(PrivacyCase.objects.exclude(state__in=CLOSED).values_list("pk", "type", "due_at")),
        unnoted=replaying.missing_in(entries),
    )


def apply(found: Withdrawals, *, now: datetime) -> list[str]:
    """Withdraw it again. Returns a sentence for each kind of which there was something."""
    with transaction.atomic():
        enabled = WebhookEndpoint.objects.filter(pk__in=list(found.endpoints), disabled_at=None)
        counts = {
            "API keys that are revoked or expire earlier": _end_keys(APIKey, found.keys),
            "management keys that are revoked or expire earlier": _end_keys(ManagementKey, found.management_keys),
            "end users who are restricted or switched off": _people(found.people),
            "tenants that are switched off": _switch_off(Tenant, found.tenants),
            "webhooks that are disabled": sum(_changed(row, found.endpoints[row.pk]) for row in enabled),
            "operators who lost a right or have another password": _operators(found),
        }
        # Somebody may have signed out since.
        SignIn.objects.all().delete()
        Operator.objects.exclude(invitation=None).update(invitation=None, invited_until=None)
    counts["redacted turns, emptied as a whole"] = sum(_redact(turn, now) for turn in found.redacted)
    lines = [f"Done again: {what}: {count:,}." for what, count in counts.items() if count]
    there = set(PrivacyCase.objects.values_list("pk", flat=True))
    lost = [f"{kind}, due {due:%Y-%m-%d}" for pk, kind, due in found.cases if pk not in there]
    return lines + ([f"Privacy cases that were opened since, to be opened again: {'; '.join(lost)}."] if lost else [])


def _values(rows: QuerySet[Any], *names: str) -> Values:
    return {row.pop("pk"): row for row in rows.values("pk", *names)}


def _changed(row: Model, wanted: dict[str, Any]) -> int:
    """Save what differs; how many rows."""
    differing = {name: value for name, value in wanted.items() if getattr(row, name) != value}
    if differing:
        type(row)._default_manager.filter(pk=row.pk).update(**differing)
    return int(bool(differing))


def _ends_of(model: type[APIKey | ManagementKey]) -> Values:
    rows = model._default_manager.exclude(revoked_at=None, expires_at=None)
    return _values(rows, "revoked_at", "expires_at")


def _end_keys(model: type[APIKey | ManagementKey], values: Values) -> int:
    count = 0
    for key in model._default_manager.filter(pk__in=list(values)):
        now = values[key.pk]
        ends = [moment for moment in (key.expires_at, now["expires_at"]) if moment]
        wanted = {"expires_at": min(ends, default=None), "revoked_at": now["revoked_at"] or key.revoked_at}
        count += _changed(key, wanted)
    return count


def _people(values: Values) -> int:
    count = 0
    for person in EndUser.objects.filter(pk__in=list(values)):
        now = values[person.pk]
        wanted: dict[str, Any] = {"restricted_at": person.restricted_at or now["restricted_at"]}
        for switch in ("capture", "serve"):
            if not now[switch] and getattr(person, switch):
                wanted |= {switch: False, f"{switch}_off_by": now[f"{switch}_off_by"]}
        if _changed(person, wanted):
            count += 1
            EndUser.objects.filter(pk=person.pk).update(generation=F("generation") + 1)
    return count


def _switch_off(model: type[Tenant], values: Values) -> int:
    return sum(
        _changed(row, {name: getattr(row, name) and values[row.pk][name] for name in ("capture", "serve")})
        for row in model.objects.filter(pk__in=list(values))
    )


def _operators(found: Withdrawals) -> int:
    count = 0
    for one in Operator.objects.filter(pk__in=list(found.operators)).prefetch_related("groups"):
        now = found.operators[one.pk]
        wanted = {name: getattr(one, name) and now[name] for name in ("is_active", "is_superuser")}
        lost = [group for group in one.groups.all() if group.pk not in found.roles[one.pk]]
        one.groups.remove(*lost)
        count += int(bool(_changed(one, {**wanted, "password": now["password"]}) or lost))
    return count


def _redact(turn: uuid.UUID, now: datetime) -> bool:
    """False: the turn is not there. It was said since."""
    try:
        turns.redact_turn(turn_id=turn, tenant=None, actor=Actor(kind=ActorKind.COMMAND), now=now)
    except NotFound:
        return False
    return True
