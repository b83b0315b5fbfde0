"""Facts of a group: members state them, withdraw what they said, and operators delete and restore them.

A fact reaches the agents of other people, so nothing of it waits for review or is served with doubts: what is not the
member's own word, speaks to a model or looks like a secret is refused.
"""

import uuid
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from memories import audit, conf, content_policy
from memories.audit import Actor
from memories.content_policy import Road
from memories.curation.groups.membership import lock_group, locked_people
from memories.curation.statements import guarding
from memories.curation.statements.write_trust import AS_USER, WriteTrust
from memories.curation.writing import WriteResult, open_write
from memories.exceptions import (
    Conflict,
    InvalidInput,
    MayNotWrite,
    NotAMember,
    NotFound,
    PersonRestricted,
    ReviewNeeded,
)
from memories.models import EndUser, GroupEvidence, GroupFact, GroupMember, MemoryGroup
from memories.models.folding import text_digest
from memories.models.memories.groups import LONGEST_GROUP_FACT
from memories.text.cleaning import clean_lines
from memories.text.secrets.redaction import redact_text


def state_group_fact(
    *,
    group_id: uuid.UUID,
    end_user: EndUser,
    content: str,
    actor: Actor,
    now: datetime,
    write_trust: WriteTrust,
    about: EndUser | None = None,
    agent_id: str = "",
) -> WriteResult[GroupFact]:
    """Store what the member said. What is known already, also from others, rests on this member, too, from now on.

    Errors: NotFound (the group; somebody was erased), PersonRestricted, NotAMember, MayNotWrite, ReviewNeeded,
    ContentForbidden, InvalidInput (nothing is left), Conflict (the group is full).
    """
    text, redactions = redact_text(" ".join(clean_lines(content).split()))
    if not text:
        raise InvalidInput.at("/content", _("Nothing of this text can be kept: state a fact in words."))
    if len(text) > LONGEST_GROUP_FACT:
        detail = _("Use at most %(most)d characters.") % {"most": LONGEST_GROUP_FACT}
        raise InvalidInput.at("/content", detail, code="max_length")
    content_policy.check(end_user.tenant, Road.GROUP, [text])
    with transaction.atomic():
        person, *others = locked_people(end_user.pk, *([about.pk] if about else []))
        _check(text, person, write_trust)
        group = lock_group(group_id, tenant_id=person.tenant_id)
        _check_members(group, person, *others)
        existing = GroupFact.objects.of(group.tenant, group).present()
        fact = existing.filter(content_hash=text_digest(text), about=others[0] if others else None).first()
        is_new = fact is None
        if fact is None:
            fact = _new_fact(group, text, others[0] if others else None, now)
        else:
            fact.said_at = now
            fact.save(update_fields=["said_at"])
        author = {"actor_kind": actor.kind, "actor_id": actor.id, "agent_id": agent_id, "trust": write_trust.trust}
        GroupEvidence.objects.update_or_create(
            tenant=group.tenant,
            fact=fact,
            end_user=person,
            defaults={**author, "said_at": now},
            create_defaults={**author, "said_at": now, "created_at": now},
        )
        audit.record(actor=actor, verb="add" if is_new else "reinforce", target=fact, now=now)
    return WriteResult(fact, is_new, redactions)


def withdraw_group_fact(
    *,
    fact_id: uuid.UUID,
    end_user: EndUser,
    actor: Actor,
    now: datetime,
    agent_id: str = "",
    write_trust: WriteTrust = AS_USER,
) -> bool:
    """The member no longer says it: the fact stays if others do; else it goes to the trash. Returns whether it stays.

    `agent_id`: only what they said through this agent. Errors: NotFound, PersonRestricted, ReviewNeeded for what has
    more trust than the `write_trust`.
    """
    with open_write(end_user, None, follows_merge=True) as owner:
        fact = _locked(fact_id)
        behind = EndUser.objects.with_aliases(owner.pk).values("pk")
        own = GroupEvidence.objects.filter(fact=fact, end_user__in=behind)
        own = own.filter(agent_id=agent_id) if agent_id else own
        if fact.trashed_at or not own.exists():
            raise NotFound
        guarding.check_none(own, guarding.outranking(write_trust))
        stays = GroupEvidence.objects.filter(fact=fact).exclude(pk__in=own.values("pk")).exists()
        if stays:
            own.delete()
            audit.record(actor=actor, verb="withdraw", target=fact, now=now)
        else:
            # It keeps its evidence, so that an operator can restore it.
            _trash(fact, actor, now)
    return stays


def delete_group_fact(*, fact_id: uuid.UUID, actor: Actor, now: datetime, write_trust: WriteTrust = AS_USER) -> None:
    """Move the fact to the trash, whoever said it; an operator can restore it for a while.

    Errors: NotFound (erased, or in the trash already), PersonRestricted for a key, ReviewNeeded where somebody said it
    with more trust than the `write_trust` has.
    """
    with transaction.atomic():
        fact = _locked(fact_id)
        if fact.trashed_at:
            raise NotFound
        if not actor.is_operator and not GroupFact.objects.served().filter(pk=fact.pk).exists():
            raise PersonRestricted
        guarding.check_none(GroupEvidence.objects.filter(fact=fact), guarding.outranking(write_trust))
        _trash(fact, actor, now)


def restore_group_fact(*, fact_id: uuid.UUID, actor: Actor, now: datetime) -> None:
    """Take the fact out of the trash. Errors: NotFound, Conflict (it is not there, or was stated anew since)."""
    with transaction.atomic():
        fact = _locked(fact_id)
        if fact.trashed_at is None:
            raise Conflict(_("Somebody else has done this meanwhile."))
        if not fact.change_set and present_twin(fact):
            raise Conflict(_("A member has stated the same again. Delete that fact first."))
        audit.record(actor=actor, verb="restore", target=untrash(fact), now=now)


def present_twin(fact: GroupFact) -> GroupFact | None:
    """The fact that says the same in its group and is not in the trash."""
    same = GroupFact.objects.of(fact.tenant, fact.group).present()
    return same.filter(content_hash=bytes(fact.content_hash), about=fact.about_id).first()


def untrash(fact: GroupFact) -> GroupFact:
    """Take a fact of a locked group out of the trash; returns where it is now. What rests on somebody by now who says
    the same rests on those who said this one, too."""
    twin = present_twin(fact)
    if twin is None:
        # The undo of what deleted it leaves it alone from now on.
        fact.trashed_at = fact.change_set = None
        fact.save(update_fields=["trashed_at", "change_set"])
        return fact
    existing = GroupEvidence.objects.filter(fact=twin).values("end_user")
    GroupEvidence.objects.filter(fact=fact).exclude(end_user__in=existing).update(fact=twin)
    fact.delete()
    return twin


def _check(text: str, person: EndUser, write_trust: WriteTrust) -> None:
    """Errors: ReviewNeeded, because nothing that others are told can wait for review here."""
    if not write_trust.is_believed(conf.rules(person.tenant)):
        raise ReviewNeeded(
            _("What an agent or a tool states is not told to a group: state what the member said, as the user.")
        )
    if guarding.flags_for_group(text, write_trust):
        raise ReviewNeeded(
            _(
                "The fact was not kept: it tells a model what to do, whom to believe or what to keep from people, or "
                "it may hold a secret. State what the member said, in plain words."
            )
        )


def _check_members(group: MemoryGroup, person: EndUser, *others: EndUser) -> None:
    """Errors: NotAMember, MayNotWrite."""
    members = dict(
        GroupMember.objects.filter(group=group, end_user__in=[person, *others]).values_list("end_user", "may_write")
    )
    if person.pk not in members:
        raise NotAMember
    if any(other.pk not in members for other in others):
        raise NotAMember(_("A fact can be about members of the group alone: the person of about_user_id is none."))
    if not members[person.pk]:
        raise MayNotWrite


def _new_fact(group: MemoryGroup, text: str, about: EndUser | None, now: datetime) -> GroupFact:
    """Errors: Conflict (the group is full)."""
    most = conf.rules(group.tenant).group_facts
    if most and GroupFact.objects.of(group.tenant, group).present().count() >= most:
        raise Conflict(_("A group can have %(most)d facts. Delete some, or have the limit raised.") % {"most": most})
    fact = GroupFact(tenant=group.tenant, group=group, about=about, created_at=now, said_at=now)
    fact.set_text(text)
    fact.save(force_insert=True)
    return fact


def _locked(fact_id: uuid.UUID) -> GroupFact:
    """The fact, with its group locked. Errors: NotFound."""
    group_id = GroupFact.objects.filter(pk=fact_id).values_list("group", flat=True).first()
    if group_id is None:
        raise NotFound
    lock_group(group_id)
    rows = GroupFact.objects.select_for_update(of=("self",)).select_related("tenant", "group")
    fact = rows.filter(pk=fact_id).first()
    if fact is None:
        raise NotFound
    return fact


def _trash(fact: GroupFact, actor: Actor, now: datetime) -> None:
    fact.trashed_at = now
    fact.save(update_fields=["trashed_at"])
    audit.record(actor=actor, verb="delete", target=fact, now=now)
