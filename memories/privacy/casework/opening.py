"""The first steps of a case: it comes in, somebody makes sure who asks, and looks at what there is."""

import uuid
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from memories import conf
from memories.audit import Actor
from memories.exceptions import InvalidInput, NotFound, PreconditionFailed
from memories.models import Asker, CaseState, CaseType, EndUser, IdentityCheck, PrivacyCase, ReturnPolicy, Tenant
from memories.privacy import registry
from memories.privacy.casework import changing, restricting, stages
from memories.privacy.casework.changing import Step
from memories.privacy.casework.stages import Verb
from memories.privacy.searching import mentions

LONGEST_CHANNEL = 40
LONGEST_REFERENCE = 255
# In a preview, beside the stores.
MENTIONS = "mentions"


def open_case(
    *,
    tenant: Tenant,
    user_id: str,
    type: str,  # noqa: A002 - the field's name
    actor: Actor,
    now: datetime,
    channel: str = "",
    reference: str = "",
    asked_by: str = Asker.SUBJECT,
    received_at: datetime | None = None,
) -> PrivacyCase:
    """Take in what somebody asks about the person whom the tenant calls `user_id`, received now or earlier.

    Errors: NotFound (no such person), InvalidInput (type, asked_by, received_at, channel, reference).
    """
    received_at = received_at or now
    _check_receipt(received_at, now)
    with transaction.atomic():
        case = PrivacyCase(
            tenant=tenant,
            end_user=_held(tenant, user_id),
            subject=conf.digest_of_person(tenant.pk, user_id),
            type=chosen("type", CaseType, type),
            asked_by=chosen("asked_by", Asker, asked_by),
            channel=changing.short("channel", channel, longest=LONGEST_CHANNEL),
            reference=changing.short("reference", reference, longest=LONGEST_REFERENCE),
            received_at=received_at,
            due_at=stages.due_at(received_at),
            opened_kind=actor.kind,
            opened_by=actor.id,
            created_at=now,
        )
        case.save(force_insert=True)
        changing.record(Verb.OPEN, case, actor=actor, now=now)
    return case


def verify_identity(
    *, case_id: uuid.UUID, expected_version: int | None, how: str, actor: Actor, now: datetime
) -> PrivacyCase:
    """Note how somebody made sure who asks, never what they were shown; a case that restricts does so from now on.

    Errors: those of `changing`, InvalidInput (how).
    """
    with changing.changing(Step(Verb.VERIFY, case_id, expected_version, actor, now)) as case:
        case.state = CaseState.VERIFIED
        case.verified_at = now
        case.verified_how = chosen("how", IdentityCheck, how)
        case.verified_kind, case.verified_by = actor.kind, actor.id
        restricting.restrict(case, now=now)
    return case


def scope_case(
    *, case_id: uuid.UUID, expected_version: int | None, policy: str, actor: Actor, now: datetime
) -> PrivacyCase:
    """Count what there is of the person, and say what an erasure means for who comes back under the id.

    The preview stands at the case: store → rows, and under `mentions` place → rows of others that name the person.
    Possible again until it is approved. Call it outside of any transaction. Errors: those of `changing`, InvalidInput
    (policy).
    """
    step = Step(Verb.SCOPE, case_id, expected_version, actor, now)
    seen = changing.looked_at(step)
    policy = chosen("policy", ReturnPolicy, policy)
    # It may take seconds, for which nobody should wait: before the case is locked.
    person = seen.find_person()
    preview = preview_of(person)
    with changing.changing(step) as case:
        if case.find_person() != person:
            # Merged, parted or erased meanwhile: these were somebody else's rows.
            raise PreconditionFailed
        case.state, case.preview = CaseState.SCOPED, preview
        case.policy, case.scoped_at = policy, now
    return case


def preview_of(person: EndUser | None) -> dict[str, Any]:
    """Store → rows of the person now; zeros when they are gone."""
    if person is None:
        return {**{store.model: 0 for store in registry.all_stores()}, MENTIONS: {}}
    return {**registry.counts(person), MENTIONS: mentions.mentions_of(person)}


def chosen(pointer: str, choices: type[CaseType | Asker | IdentityCheck | ReturnPolicy], value: str) -> str:
    """One of the choices. Errors: InvalidInput."""
    if value not in choices.values:
        raise InvalidInput.at(pointer, _("This is not one of the choices."), code="invalid_choice")
    return value


def _held(tenant: Tenant, user_id: str) -> EndUser:
    """Locked: who is being erased at this moment is not there any more afterwards."""
    people = EndUser.objects.called(tenant, user_id)
    person = people.select_for_update(of=("self",), no_key=True).first()
    if person is None:
        raise NotFound
    return person


def _check_receipt(received_at: datetime, now: datetime) -> None:
    if received_at > now:
        raise InvalidInput.at("received_at", _("It cannot have been received in the future."))
    if received_at < now - stages.OLDEST_RECEIPT:
        raise InvalidInput.at("received_at", _("It cannot have been received more than a year ago."))
