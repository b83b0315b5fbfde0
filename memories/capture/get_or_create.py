"""End users by the ids that callers use: the one place that creates them for callers.

It knows who was erased, and it follows ids that lead to another person (`merged_into`).
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import F

from memories import conf
from memories.exceptions import Erased
from memories.models import EndUser, ReturnPolicy, Tenant, Tombstone
from memories.models.hand_written import first

# Weaker than the locks that extraction takes at its commit, so that both continue. A merge waits for it.
_LOCK = """
    SELECT external_id, merged_into_id FROM memories_enduser WHERE tenant_id = %(tenant)s AND id = %(id)s FOR KEY SHARE
"""

_created: ContextVar[list[uuid.UUID] | None] = ContextVar("created_people", default=None)


@contextmanager
def noting_created() -> Iterator[list[uuid.UUID]]:
    """The ids of those who are created inside the block, as they come, also in transactions that are rolled back."""
    found: list[uuid.UUID] = []
    token = _created.set(found)
    try:
        yield found
    finally:
        _created.reset(token)


def end_user(*, tenant: Tenant, user_id: str, now: datetime) -> tuple[EndUser, bool]:
    """The end user or alias with this id, created where missing; True if it was created just now.

    Errors, with nobody created: Erased.
    """
    named = {"tenant": tenant, "external_id": user_id}
    existing = EndUser.objects.filter(**named).first()
    if existing:
        return existing, False
    try:
        with transaction.atomic():
            person = EndUser.objects.create(**named, created_at=now, last_seen_at=now)
            apply_return_policy(person, now=now)
    except IntegrityError:
        # Another transaction has created them since the look-up.
        return EndUser.objects.get(**named), False
    noted = _created.get()
    if noted is not None:
        noted.append(person.pk)
    return person, True


def apply_return_policy(person: EndUser, *, now: datetime) -> None:
    """Refuse or flag the person if somebody with this id was erased. Errors: Erased.

    Call it in the transaction that wrote the id, after that statement. If that statement waited for an erasure to
    commit, only a later statement sees the tombstone.
    """
    tombstone = _tombstone(person.tenant_id, person.external_id)
    if tombstone is None or tombstone.policy == ReturnPolicy.ALLOW_NEW:
        return
    if tombstone.policy == ReturnPolicy.REFUSE:
        raise Erased
    person.erased_before = True
    EndUser.objects.filter(pk=person.pk).update(erased_before=True)
    Tombstone.objects.filter(pk=tombstone.pk).update(met=F("met") + 1, last_met_at=now)


def refuse_erased(tenant: Tenant, user_id: str) -> None:
    """Errors: Erased if somebody with this id was erased and the id must not be used again."""
    tombstone = _tombstone(tenant.pk, user_id)
    if tombstone and tombstone.policy == ReturnPolicy.REFUSE:
        raise Erased


def _tombstone(tenant_id: uuid.UUID, user_id: str) -> Tombstone | None:
    digest = conf.digest_of_person(tenant_id, user_id)
    return Tombstone.objects.filter(tenant=tenant_id, digest=digest).first()


def lock_alias(named: EndUser) -> EndUser | None:
    """The person that this id leads to, locked against merges and new ids until the end of the transaction.

    None: the row has another id by now, so look it up again. Whoever creates a session locks its person like this: a
    merge that cannot see the session yet waits for it.
    """
    row = first(_LOCK, {"tenant": named.tenant_id, "id": named.pk})
    if row is None or row[0] != named.external_id:
        return None
    person: uuid.UUID = named.pk
    while row and row[1]:
        person = row[1]
        row = first(_LOCK, {"tenant": named.tenant_id, "id": person})
    return named if person == named.pk else EndUser.objects.filter(pk=person).first()
