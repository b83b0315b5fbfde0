"""A person's external id: what the API takes as one, and how staff change it."""

import re
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from memories import audit
from memories.audit import Actor
from memories.capture import get_or_create
from memories.curation.change_sets import Changes
from memories.curation.facts.changing import lock_facts
from memories.curation.people.errors import PersonExists, PersonMerged
from memories.exceptions import InvalidInput, NotFound, PersonRestricted, PreconditionFailed
from memories.models import APIKey, EndUser, Fact, PersonMerge, Tenant

LONGEST_ID = 255
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def change_external_id(*, end_user: EndUser, external_id: str, keeps_old: bool, actor: Actor, now: datetime) -> EndUser:
    """Give the person another id; `end_user` is the row as the caller saw it.

    With `keeps_old` the old id becomes an alias of the person. Without, it is free: the next turn under it makes a new
    person, and facts and API keys for the old id are for the new one. An alias of this person can become their id.

    Errors: InvalidInput, PersonExists, PreconditionFailed (another id by now), PersonRestricted, PersonMerged,
    NotFound, Erased (the new id is that of an erased person).
    """
    check_id(external_id)
    old = end_user.external_id
    changes = Changes(actor=actor, now=now)
    try:
        with transaction.atomic():
            person = _locked(end_user, old, with_addressed=not keeps_old)
            if external_id == old:
                return person
            _free(external_id, person)
            person.external_id = external_id
            person.save(update_fields=["external_id"])
            get_or_create.apply_return_policy(person, now=now)
            if keeps_old:
                EndUser.objects.create(
                    tenant=person.tenant, external_id=old, merged_into=person, created_at=now, last_seen_at=now
                )
            facts = 0 if keeps_old else _readdress(person.tenant, old, external_id, changes)
            audit.record(
                actor=actor,
                verb="change_id",
                target=person,
                object_id=person.pk,
                tenant=person.tenant,
                now=now,
                counts={"facts": facts, "kept": int(keeps_old)},
            )
    except IntegrityError as error:
        # Somebody took the id between the look and the write.
        raise PersonExists from error
    return person


def _locked(end_user: EndUser, old: str, *, with_addressed: bool) -> EndUser:
    """Lock the person and, in one order, those who have facts that this id may read."""
    wanted = Q(pk=end_user.pk)
    if with_addressed:
        wanted |= Q(pk__in=_addressed(end_user.tenant_id, old).values("end_user"))
    people = EndUser.objects.select_for_update(of=("self",)).select_related("tenant").filter(wanted)
    person = next((one for one in people.order_by("pk") if one.pk == end_user.pk), None)
    if person is None:
        raise NotFound
    if person.merged_into_id:
        raise PersonMerged
    if person.restricted_at:
        raise PersonRestricted
    if person.external_id != old:
        raise PreconditionFailed
    return person


def _free(external_id: str, person: EndUser) -> None:
    """Delete the alias of this person that has the id; the id of somebody who was merged stays theirs."""
    holder = EndUser.objects.filter(tenant=person.tenant, external_id=external_id).first()
    if holder is None:
        return
    if holder.merged_into_id != person.pk or PersonMerge.objects.filter(merged=holder, undone_at=None).exists():
        raise PersonExists
    holder.delete()


def _addressed(tenant_id: Any, external_id: str) -> QuerySet[Fact]:
    return Fact.objects.filter(tenant=tenant_id, allowed_users__contains=[external_id])


def _readdress(tenant: Tenant, old: str, new: str, changes: Changes) -> int:
    """Change the readers of facts and the person of API keys from the old id to the new one; returns how many facts.

    Otherwise whoever gets the old id could read these facts and use these keys.
    """
    facts = lock_facts(list(_addressed(tenant.pk, old).values_list("pk", flat=True)))
    for fact in facts:
        with changes.changing(fact, "change_id"):
            fact.allowed_users = list(dict.fromkeys(new if name == old else name for name in fact.allowed_users))
    APIKey.objects.filter(tenant=tenant, user_id=old).update(user_id=new)
    return len(facts)


def check_id(external_id: str, *, at: str = "external_id") -> None:
    """Errors: InvalidInput for what the API does not take as an id."""
    if not 1 <= len(external_id) <= LONGEST_ID or not external_id.strip() or _CONTROL.search(external_id):
        raise InvalidInput.at(at, _("An id has 1 to 255 characters and no control characters."))
