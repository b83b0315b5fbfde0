"""What staff and keys may do to a person's record."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from memories import audit
from memories.audit import Actor
from memories.curation.change_sets import ChangeSet
from memories.curation.fact_changes import lock_facts
from memories.curation.marks import mark_of
from memories.curation.people_errors import PersonExists, PersonMerged
from memories.curation.scrubbing import person_without_secrets
from memories.exceptions import InvalidInput, NotFound, PersonRestricted, PreconditionFailed
from memories.models import EndUser, Fact, PersonMerge, Tenant
from memories.pipeline import newcomers

LONGEST_ID = 255
# What may be said of a person besides the ids.
RECORD = ("display_name", "time_zone", "language", "metadata", "capture", "serve")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def person_for_writing(*, tenant: Tenant, user_id: str, now: datetime) -> EndUser:
    """The person whom the caller calls so, made on first sight. Errors: PersonRestricted, Erased."""
    named, _made = newcomers.find_or_make(tenant=tenant, user_id=user_id, now=now)
    person = named.merged_into or named
    person.tenant = tenant
    if person.restricted_at:
        raise PersonRestricted
    return person


def seen_of_person(person: EndUser) -> str:
    """The mark of a person's record as somebody sees it."""
    return mark_of(person, RECORD)


def update_person(
    *, end_user: EndUser, changes: dict[str, Any], actor: Actor, now: datetime, seen: str | None = None
) -> EndUser:
    """Set named fields of a person's record, never the ids, without secrets; `seen` is the mark of what was changed.

    Errors: NotFound (erased meanwhile), PersonRestricted for a key, PersonMerged, PreconditionFailed (somebody changed
    it since).
    """
    changes = person_without_secrets(changes)
    with transaction.atomic():
        people = EndUser.objects.select_for_update(of=("self",), no_key=True).select_related("tenant")
        person = people.filter(pk=end_user.pk).first()
        if person is None:
            raise NotFound
        if person.merged_into_id:
            raise PersonMerged
        if person.restricted_at and not actor.is_operator:
            raise PersonRestricted
        if seen is not None and seen != seen_of_person(person):
            raise PreconditionFailed
        for name, value in changes.items():
            setattr(person, name, value)
        person.save(update_fields=list(changes))
        audit.record(actor=actor, verb="update", target=person, object_id=person.pk, tenant=person.tenant, now=now)
    return person


def add_person(
    *, tenant: Tenant, external_id: str, actor: Actor, now: datetime, record: dict[str, Any] | None = None
) -> EndUser:
    """A person whom no turn has made yet, with fields of their record, without secrets.

    Errors: InvalidInput (the id), PersonExists, Erased.
    """
    check_id(external_id)
    given = person_without_secrets(record or {})
    person = EndUser(tenant=tenant, external_id=external_id, created_at=now, last_seen_at=now, **given)
    try:
        with transaction.atomic():
            person.save(force_insert=True)
            newcomers.meet(person, now=now)
            audit.record(actor=actor, verb="add", target=person, object_id=person.pk, tenant=tenant, now=now)
    except IntegrityError as error:
        # Only end_user_once_per_tenant can fail here.
        raise PersonExists from error
    return person


def change_external_id(*, end_user: EndUser, external_id: str, keeps_old: bool, actor: Actor, now: datetime) -> EndUser:
    """Call the person by another id from now on; `end_user` is as whoever asks for it saw them.

    With `keeps_old` the old id leads to the person as well. Without, it is nobody's: the next turn under it makes a new
    person, and facts that were for the old id alone are for the new one. An id that leads here already can be taken.

    Errors: InvalidInput, PersonExists, PreconditionFailed (another id by now), PersonRestricted, PersonMerged,
    NotFound, Erased (the new id is of somebody who was).
    """
    check_id(external_id)
    old = end_user.external_id
    changes = ChangeSet(actor=actor, now=now)
    try:
        with transaction.atomic():
            person = _locked(end_user, old, with_readers=not keeps_old)
            if external_id == old:
                return person
            _free(external_id, person)
            person.external_id = external_id
            person.save(update_fields=["external_id"])
            newcomers.meet(person, now=now)
            if keeps_old:
                EndUser.objects.create(
                    tenant=person.tenant, external_id=old, merged_into=person, created_at=now, last_seen_at=now
                )
            facts = 0 if keeps_old else _readdress(person.tenant, old, external_id, changes)
            _record(person, changes, {"facts": facts, "kept": int(keeps_old)})
    except IntegrityError as error:
        # Somebody took the id between the look and the write.
        raise PersonExists from error
    return person


def check_id(external_id: str) -> None:
    """Errors: InvalidInput for what the API does not take as an id."""
    if not 1 <= len(external_id) <= LONGEST_ID or not external_id.strip() or _CONTROL.search(external_id):
        raise InvalidInput.at("external_id", _("An id has 1 to 255 characters, and none of them a control character."))


def _locked(end_user: EndUser, old: str, *, with_readers: bool) -> EndUser:
    """The person, and with them, in one order, those who have facts for this id alone."""
    meant = Q(pk=end_user.pk)
    if with_readers:
        meant |= Q(pk__in=_addressed(end_user.tenant_id, old).values("end_user"))
    people = EndUser.objects.select_for_update(of=("self",)).select_related("tenant").filter(meant)
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
    """Take an id back that merely leads to this person; that of somebody who was merged stays theirs."""
    holder = EndUser.objects.filter(tenant=person.tenant, external_id=external_id).first()
    if holder is None:
        return
    if holder.merged_into_id != person.pk or PersonMerge.objects.filter(merged=holder, undone_at=None).exists():
        raise PersonExists
    holder.delete()


def _addressed(tenant_id: Any, external_id: str) -> QuerySet[Fact]:
    return Fact.objects.filter(tenant=tenant_id, allowed_users__contains=[external_id])


def _readdress(tenant: Tenant, old: str, new: str, changes: ChangeSet) -> int:
    """Facts for the old id alone are for the new one, or whoever gets the old id would read them; how many."""
    facts: Sequence[Fact] = lock_facts(list(_addressed(tenant.pk, old).values_list("pk", flat=True)))
    for fact in facts:
        with changes.changing(fact, "change_id"):
            fact.allowed_users = list(dict.fromkeys(new if name == old else name for name in fact.allowed_users))
    return len(facts)


def _record(person: EndUser, changes: ChangeSet, counts: dict[str, int]) -> None:
    audit.record(
        actor=changes.actor,
        verb="change_id",
        target=person,
        object_id=person.pk,
        tenant=person.tenant,
        now=changes.now,
        counts=counts,
    )
