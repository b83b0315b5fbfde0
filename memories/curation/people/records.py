"""A person's record: made on first sight or by staff, and updated by staff and keys."""

from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from memories import audit
from memories.audit import Actor
from memories.capture import get_or_create
from memories.curation.marks import mark_of
from memories.curation.people.errors import PersonExists, PersonMerged
from memories.curation.people.external_ids import check_id
from memories.curation.statements.scrubbing import scrubbed_person
from memories.exceptions import NotFound, OperatorWord, PersonRestricted, PreconditionFailed
from memories.models import ActorKind, EndUser, Tenant
from memories.models.people.people import SWITCHES, who_switched

# What can be set of a person besides the ids.
RECORD = ("display_name", "time_zone", "language", "metadata", "capture", "serve")


def person_for_writing(*, tenant: Tenant, user_id: str, now: datetime) -> EndUser:
    """The person with the caller's id, made on first sight. Errors: PersonRestricted, Erased."""
    named, _made = get_or_create.end_user(tenant=tenant, user_id=user_id, now=now)
    person = named.merged_into or named
    person.tenant = tenant
    if person.restricted_at:
        raise PersonRestricted
    return person


def state_of_person(person: EndUser) -> str:
    """The mark of a person's record as it is now."""
    return mark_of(person, RECORD)


def update_person(
    *, end_user: EndUser, changes: dict[str, Any], actor: Actor, now: datetime, expected: str | None = None
) -> EndUser:
    """Set named fields of a person's record, never the ids, without secrets; `expected`: the mark that the caller saw.

    Errors: NotFound (erased meanwhile), PersonRestricted for a key, PersonMerged, PreconditionFailed (somebody changed
    it since), OperatorWord for a key that switches on what an operator switched off.
    """
    changes = scrubbed_person(changes)
    with transaction.atomic():
        people = EndUser.objects.select_for_update(of=("self",), no_key=True).select_related("tenant")
        person = people.filter(pk=end_user.pk).first()
        if person is None:
            raise NotFound
        if person.merged_into_id:
            raise PersonMerged
        if person.restricted_at and not actor.is_operator:
            raise PersonRestricted
        if expected is not None and expected != state_of_person(person):
            raise PreconditionFailed
        changes = changes | _switched(person, changes, actor)
        for name, value in changes.items():
            setattr(person, name, value)
        person.save(update_fields=list(changes))
        audit.record(actor=actor, verb="update", target=person, now=now)
    return person


def add_person(
    *, tenant: Tenant, external_id: str, actor: Actor, now: datetime, record: dict[str, Any] | None = None
) -> EndUser:
    """Make a person before their first turn, with fields of their record, without secrets.

    Errors: InvalidInput (the id), PersonExists, Erased.
    """
    check_id(external_id)
    given = scrubbed_person(record or {})
    person = EndUser(tenant=tenant, external_id=external_id, created_at=now, last_seen_at=now)
    for name, value in (given | _switched(person, given, actor)).items():
        setattr(person, name, value)
    try:
        with transaction.atomic():
            person.save(force_insert=True)
            get_or_create.apply_return_policy(person, now=now)
            audit.record(actor=actor, verb="add", target=person, object_id=person.pk, tenant=tenant, now=now)
    except IntegrityError as error:
        # Only end_user_once_per_tenant can fail here.
        raise PersonExists from error
    return person


def _check_switched_by(by: str, actor: Actor) -> None:
    """Errors: OperatorWord, where somebody else than this key, or this person, switched it off."""
    if by == actor.kind:
        return
    if by == ActorKind.PERSON:
        raise OperatorWord(
            _("The person switched this off on their own page. Only they or an operator can switch it on.")
        )
    if by == ActorKind.KEY:
        raise OperatorWord(_("The application switched this off. Ask there to switch it on again."))
    # A switch that was off before the hub recorded who did it counts as an operator's.
    raise OperatorWord(_("An operator switched this off. Only an operator can switch it on."))


def _switched(person: EndUser, changes: dict[str, Any], actor: Actor) -> dict[str, str]:
    """The fields that say who switched off what these changes switch. Errors: OperatorWord."""
    who = {}
    for name in SWITCHES:
        if name not in changes or changes[name] == getattr(person, name):
            continue
        by = who_switched(name)
        if changes[name] and not actor.is_operator and actor.kind != ActorKind.COMMAND:
            _check_switched_by(getattr(person, by), actor)
        who[by] = "" if changes[name] else actor.kind
    return who
