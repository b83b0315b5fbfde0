"""People on first sight: the one place that makes them for callers, and knows those who were erased."""

from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import F

from memories import conf
from memories.exceptions import Erased
from memories.models import EndUser, ReturnPolicy, Tenant, Tombstone


def find_or_make(*, tenant: Tenant, user_id: str, now: datetime) -> tuple[EndUser, bool]:
    """Whoever has this id, a person or a name that leads to one, made where missing; True: made just now.

    Errors, with nobody made: Erased.
    """
    named = {"tenant": tenant, "external_id": user_id}
    known = EndUser.objects.filter(**named).first()
    if known:
        return known, False
    try:
        with transaction.atomic():
            person = EndUser.objects.create(**named, created_at=now, last_seen_at=now)
            meet(person, now=now)
    except IntegrityError:
        # Somebody else made them since the look.
        return EndUser.objects.get(**named), False
    return person, True


def meet(person: EndUser, *, now: datetime) -> None:
    """Look whether somebody of this id was erased, and do what was decided then; call it in the transaction that wrote
    the id, after that statement: who waited for an erasure to commit sees its tombstone only in a later one.

    Errors: Erased.
    """
    digest = conf.digest_of_person(person.tenant_id, person.external_id)
    tombstone = Tombstone.objects.filter(tenant=person.tenant_id, digest=digest).first()
    if tombstone is None or tombstone.policy == ReturnPolicy.ALLOW_NEW:
        return
    if tombstone.policy == ReturnPolicy.REFUSE:
        raise Erased
    person.erased_before = True
    EndUser.objects.filter(pk=person.pk).update(erased_before=True)
    Tombstone.objects.filter(pk=tombstone.pk).update(met=F("met") + 1, last_met_at=now)
