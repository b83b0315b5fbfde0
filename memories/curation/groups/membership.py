"""Groups and their members: founding, renaming, deleting and restoring a group, who joins it, and who leaves."""

import uuid
from collections.abc import Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from memories import audit
from memories.audit import Actor
from memories.curation.statements import guarding
from memories.curation.statements.write_trust import AS_USER, WriteTrust
from memories.curation.writing import lock_person
from memories.exceptions import Conflict, InvalidInput, NotFound, PersonRestricted
from memories.models import EndUser, GroupEvidence, GroupMember, MemoryGroup, Tenant
from memories.text.cleaning import clean_lines
from memories.text.injection import detection
from memories.text.secrets.redaction import redact_text


def create_group(
    *, tenant: Tenant, name: str, kind: str, actor: Actor, now: datetime, members: Sequence[EndUser] = ()
) -> MemoryGroup:
    """Make a group of these people, who may write, or without members.

    Errors: InvalidInput (the name); NotFound, PersonRestricted (a member; nothing is made).
    """
    group = MemoryGroup(tenant=tenant, name=_checked_name(name), kind=kind, created_at=now)
    with transaction.atomic():
        # People are locked before the group, in one order.
        people = locked_people(*(person.pk for person in members))
        group.save(force_insert=True)
        audit.record(actor=actor, verb="add", target=group, now=now)
        for person in people:
            set_member(group_id=group.pk, end_user=person, may_write=True, actor=actor, now=now)
    return group


def change_group(
    *, group_id: uuid.UUID, actor: Actor, now: datetime, name: str | None = None, kind: str | None = None
) -> MemoryGroup:
    """Give the group another name or kind. Errors: NotFound, InvalidInput (the name)."""
    checked = None if name is None else _checked_name(name)
    with transaction.atomic():
        group = lock_group(group_id)
        group.name = group.name if checked is None else checked
        group.kind = group.kind if kind is None else kind
        group.save(update_fields=["name", "kind"])
        audit.record(actor=actor, verb="update", target=group, now=now)
    return group


def delete_group(*, group_id: uuid.UUID, actor: Actor, now: datetime, write_trust: WriteTrust = AS_USER) -> None:
    """Move the group to the trash with its members and facts: from now on nobody is told of it. An operator can restore
    it until a nightly pass deletes it for good.

    Errors: NotFound (erased with its tenant, or in the trash already); PersonRestricted for a key, while a member is
    restricted, or somebody who said one of its facts; ReviewNeeded where something in it was said with more trust than
    the `write_trust` has.
    """
    with transaction.atomic():
        group = lock_group(group_id)
        if not actor.is_operator and people_with_data_in(group).filter(restricted_at__isnull=False).exists():
            raise PersonRestricted
        said = GroupEvidence.objects.filter(tenant=group.tenant_id, fact__group=group, fact__trashed_at=None)
        guarding.check_none(said, guarding.outranking(write_trust))
        group.trashed_at = now
        group.save(update_fields=["trashed_at"])
        audit.record(actor=actor, verb="delete", target=group, now=now)


def restore_group(*, group_id: uuid.UUID, actor: Actor, now: datetime) -> None:
    """Take the group out of the trash, with the members and facts that it had. Errors: NotFound, Conflict (it is not
    there)."""
    with transaction.atomic():
        group = lock_group(group_id, is_trashed=None)
        if group.trashed_at is None:
            raise Conflict(_("Somebody else has done this meanwhile."))
        group.trashed_at = None
        group.save(update_fields=["trashed_at"])
        audit.record(actor=actor, verb="restore", target=group, now=now)


def people_with_data_in(group: MemoryGroup) -> QuerySet[EndUser]:
    """The members, those who said something there, and those whom it is about."""
    return EndUser.objects.filter(
        Q(memberships__group=group) | Q(said_in_groups__fact__group=group) | Q(group_facts__group=group)
    )


def set_member(
    *, group_id: uuid.UUID, end_user: EndUser, may_write: bool, actor: Actor, now: datetime
) -> tuple[GroupMember, bool]:
    """Let the person belong to the group, and say whether they may write; returns whether they are new to it.

    Errors: NotFound (the group; the person was erased), PersonRestricted.
    """
    with transaction.atomic():
        person = locked_people(end_user.pk)[0]
        group = lock_group(group_id, tenant_id=person.tenant_id)
        member, is_new = GroupMember.objects.get_or_create(
            tenant=group.tenant, group=group, end_user=person, defaults={"may_write": may_write, "created_at": now}
        )
        if is_new or member.may_write != may_write:
            member.may_write = may_write
            member.save(update_fields=["may_write"])
            audit.record(actor=actor, verb="add_member" if is_new else "change_member", target=group, now=now)
            audit.record(
                actor=actor,
                verb="join_group" if is_new else "change_member",
                target=person,
                object_id=person.pk,
                tenant=group.tenant,
                now=now,
            )
    return member, is_new


def remove_member(*, group_id: uuid.UUID, end_user: EndUser, actor: Actor, now: datetime) -> None:
    """The person leaves the group: from now on their agents are told nothing of it. What they said stays.

    Also of a restricted person. Errors: NotFound (no such group, no member, erased meanwhile).
    """
    with transaction.atomic():
        owner = lock_person(end_user.pk)
        group = lock_group(group_id, tenant_id=end_user.tenant_id)
        # An id that leads to the person may be a member, too: of two members who were merged.
        behind = EndUser.objects.with_aliases(owner).values("pk")
        gone, _each = GroupMember.objects.filter(group=group, end_user__in=behind).delete()
        if not gone:
            raise NotFound
        audit.record(actor=actor, verb="remove_member", target=group, now=now)
        audit.record(actor=actor, verb="leave_group", target=EndUser, object_id=owner, tenant=group.tenant, now=now)


def locked_people(*ids: uuid.UUID) -> list[EndUser]:
    """These people, or whom they were merged into meanwhile, locked. Errors: NotFound (erased), PersonRestricted."""
    led = {pk: lock_person(pk) for pk in sorted(set(ids))}
    people = EndUser.objects.select_related("tenant").in_bulk(led.values())
    found = [people[led[pk]] for pk in ids]
    if any(person.restricted_at for person in found):
        raise PersonRestricted
    return found


def lock_group(
    group_id: uuid.UUID, *, tenant_id: uuid.UUID | None = None, is_trashed: bool | None = False
) -> MemoryGroup:
    """The group, locked; `is_trashed=None`: in the trash or not. Errors: NotFound."""
    rows = MemoryGroup.objects.select_for_update(of=("self",), no_key=True).select_related("tenant")
    group = rows.filter(pk=group_id, **({"tenant": tenant_id} if tenant_id else {})).first()
    if group is None or (is_trashed is not None and bool(group.trashed_at) != is_trashed):
        raise NotFound
    return group


def _checked_name(name: str) -> str:
    """The name as it is kept: contexts show it as a heading. Errors: InvalidInput."""
    kept = redact_text(" ".join(clean_lines(name).split()))[0]
    if not kept or detection.are_meant_for_model(kept) or detection.speaks_to_model(kept):
        raise InvalidInput.at("/name", _("Give a name that says who the group is, and speaks to no model."))
    return kept[:100]
