"""What staff and keys may do to a person's record."""

from datetime import datetime
from typing import Any

from django.db import transaction

from memories import audit
from memories.audit import Actor
from memories.curation.scrubbing import person_without_secrets
from memories.exceptions import PersonRestricted
from memories.models import EndUser, Tenant


def person_for_writing(*, tenant: Tenant, user_id: str, now: datetime) -> EndUser:
    """The person with the caller's id, made on first sight. Errors: PersonRestricted."""
    person, _ = EndUser.objects.get_or_create(
        tenant=tenant, external_id=user_id, defaults={"created_at": now, "last_seen_at": now}
    )
    person.tenant = tenant
    if person.restricted_at:
        raise PersonRestricted
    return person


def update_person(*, end_user: EndUser, changes: dict[str, Any], actor: Actor, now: datetime) -> EndUser:
    """Set named fields of a person's record, never the ids, without secrets. Errors: PersonRestricted for a key."""
    changes = person_without_secrets(changes)
    with transaction.atomic():
        people = EndUser.objects.select_for_update(of=("self",), no_key=True).select_related("tenant")
        person = people.get(pk=end_user.pk)
        if person.restricted_at and not actor.is_operator:
            raise PersonRestricted
        for name, value in changes.items():
            setattr(person, name, value)
        person.save(update_fields=list(changes))
        audit.record(actor=actor, verb="update", target=person, object_id=person.pk, tenant=person.tenant, now=now)
    return person
