"""What operators decide about skills: approve or reject a version, edit it, withdraw, roll back, share, undo.

Each verb locks the skill. Nothing is served that no operator approved; an operator's own words are checked for what
others must not read, too.
"""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from memories import audit
from memories.audit import Actor
from memories.curation.skills import checking
from memories.exceptions import Conflict, InvalidInput, NotFound, PreconditionFailed
from memories.models import Skill, SkillText, SkillVersion
from memories.skills import rendering, serving, trials
from memories.skills.founding import NewText, behind, copy_texts, store_texts

State, Status, Section = SkillVersion.State, Skill.Status, SkillText.Section
MOST_LINES = 30


@dataclass(frozen=True)
class EditedText:
    """A line as an operator leaves it; `of` is the text that it was made of, if any, whose trajectories stay behind
    it."""

    section: str
    text: str
    of: uuid.UUID | None = None


def approve(*, skill_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None) -> Skill:
    """Serve the version that waits from now on; its trials begin here.

    Errors: NotFound, PreconditionFailed, Conflict (none waits; or it says what others must not read).
    """
    with _deciding(skill_id, expected_version) as skill:
        version = waiting(skill)
        if version is None:
            raise Conflict(_("Nothing of this skill waits for review."))
        _check(skill, version)
        _serve(skill, version, actor, now=now)
        _decided(skill, "approve", actor, now=now, number=version.number)
    return skill


def reject(*, skill_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None) -> Skill:
    """Decline the version that waits; what is in use stays. Errors: NotFound, PreconditionFailed, Conflict."""
    with _deciding(skill_id, expected_version) as skill:
        version = waiting(skill)
        if version is None:
            raise Conflict(_("Nothing of this skill waits for review."))
        version.state, version.reviewed_by, version.reviewed_at = State.REJECTED, actor.id, now
        version.save(update_fields=["state", "reviewed_by", "reviewed_at"])
        if skill.status == Status.PROPOSED:
            skill.status = Status.REJECTED
        _decided(skill, "reject", actor, now=now, number=version.number)
    return skill


def edit(
    *,
    skill_id: uuid.UUID,
    texts: Sequence[EditedText],
    actor: Actor,
    now: datetime,
    expected_version: int | None = None,
) -> Skill:
    """Write a new version, which waits for approval, from the newest; the one that waited is replaced.

    A line that is kept or reworded rests on what it rested on. Errors: NotFound, PreconditionFailed, InvalidInput.
    """
    with _deciding(skill_id, expected_version) as skill:
        given = [EditedText(one.section, rendering.one_line(one.text), one.of) for one in texts]
        given = [one for one in given if one.text]
        _check_texts(skill, given)
        SkillVersion.objects.filter(skill=skill, state=State.PROPOSED).update(state=State.REPLACED)
        version = _new_version(skill, actor, now=now)
        known = SkillText.objects.filter(of_version__skill=skill, pk__in=[one.of for one in given if one.of])
        # What an operator wrote stays an operator's.
        own = dict(known.values_list("pk", "is_own"))
        rests = behind(own)
        made = [
            NewText(one.section, one.text, rests[one.of], own.get(one.of, True))
            if one.of
            else NewText(one.section, one.text, (), is_own=True)
            for one in given
        ]
        store_texts(made, version)
        skill.waits_since = skill.waits_since or now
        _decided(skill, "edit", actor, now=now, number=version.number)
    return skill


def withdraw(*, skill_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None) -> Skill:
    """Serve it to nobody. Errors: NotFound, PreconditionFailed, Conflict (it is not in use)."""
    with _deciding(skill_id, expected_version) as skill:
        if skill.status != Status.SERVING:
            raise Conflict(_("Somebody else has done this meanwhile."))
        trials.withdraw(skill, Skill.Reason.OPERATOR, actor=actor, now=now)
    return skill


def leave_withdrawn(*, skill_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None) -> Skill:
    """An operator has looked at a skill that was withdrawn by itself.

    Errors: NotFound, PreconditionFailed, Conflict.
    """
    with _deciding(skill_id, expected_version) as skill:
        if skill.status != Status.WITHDRAWN or not skill.waits_since or waiting(skill):
            raise Conflict(_("Somebody else has done this meanwhile."))
        _decided(skill, "keep", actor, now=now, number=skill.served or 0)
    return skill


def serve_version(
    *, skill_id: uuid.UUID, number: int, actor: Actor, now: datetime, expected_version: int | None = None
) -> Skill:
    """Serve an earlier version again, as a new one, whose trials begin anew.

    Errors: NotFound (no such version), PreconditionFailed, Conflict (nothing is left of it; no operator approved it).
    """
    with _deciding(skill_id, expected_version) as skill:
        former = SkillVersion.objects.filter(skill=skill, number=number).first()
        if former is None:
            raise NotFound
        if former.state != State.FORMER:
            raise Conflict(_("Only a version that was in use can be used again."))
        version = _new_version(skill, actor, now=now)
        copy_texts(serving.texts_of([former]).get(former.pk, ()), version)
        _check(skill, version)
        _serve(skill, version, actor, now=now)
        _decided(skill, "restore", actor, now=now, number=version.number)
    return skill


def set_share(
    *, skill_id: uuid.UUID, share: int, actor: Actor, now: datetime, expected_version: int | None = None
) -> Skill:
    """Serve it to so many percent of sessions. Trials that began stay as they are.

    Errors: NotFound, PreconditionFailed, InvalidInput.
    """
    if not 0 <= share <= 100:
        raise InvalidInput.at("/share", _("Give a number from 0 to 100."))
    with _deciding(skill_id, expected_version) as skill:
        skill.share = share
        _decided(skill, "change", actor, now=now, number=share, waits=bool(skill.waits_since))
    return skill


def undo(*, skill_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None) -> Skill:
    """Take the last decision about a version back: it waits again, and what was in use before it is in use.

    Errors: NotFound, PreconditionFailed, Conflict (nothing can be taken back).
    """
    with _deciding(skill_id, expected_version) as skill:
        version = undoable(skill)
        if version is None:
            raise Conflict(_("There is no decision to take back."))
        if version.state == State.SERVED:
            _go_back(skill, version)
        elif skill.status == Status.REJECTED:
            skill.status = Status.PROPOSED
        version.state, version.reviewed_by, version.reviewed_at = State.PROPOSED, "", None
        version.served_from = version.replaced = None
        version.save()
        skill.waits_since = now
        _decided(skill, "undo", actor, now=now, number=version.number)
    return skill


def _go_back(skill: Skill, version: SkillVersion) -> None:
    """Put into use what this version took the place of; if that was nothing, what was in use last stays withdrawn."""
    before = SkillVersion.objects.filter(skill=skill, number=version.replaced or 0, state=State.FORMER).first()
    if before and serving.says_something(serving.texts_of([before]).get(before.pk, ())):
        SkillVersion.objects.filter(pk=before.pk).update(state=State.SERVED, served_until=None)
        skill.status, skill.reason, skill.served = Status.SERVING, "", before.number
        return
    former = SkillVersion.objects.filter(skill=skill, state=State.FORMER).order_by("-served_until", "-number").first()
    skill.served = former.number if former else None
    skill.status = Status.WITHDRAWN if former else Status.PROPOSED
    # The audit trail has why. Of what was withdrawn by itself an operator has decided.
    skill.reason = Skill.Reason.OPERATOR if former else ""


def waiting(skill: Skill) -> SkillVersion | None:
    """The version that waits for review."""
    return SkillVersion.objects.filter(skill=skill, state=State.PROPOSED).order_by("-number").first()


def undoable(skill: Skill) -> SkillVersion | None:
    """The version about which somebody decided last, unless another one waits."""
    newest = SkillVersion.objects.filter(skill=skill).order_by("-number").first()
    may = newest and newest.reviewed_by and newest.state in (State.SERVED, State.REJECTED)
    return newest if may and not waiting(skill) else None


@contextmanager
def _deciding(skill_id: uuid.UUID, expected_version: int | None) -> Iterator[Skill]:
    """The skill, locked; all or nothing. Errors: NotFound, PreconditionFailed."""
    with transaction.atomic():
        rows = Skill.objects.select_for_update(of=("self",)).select_related("tenant")
        skill = rows.filter(pk=skill_id).first()
        if skill is None:
            raise NotFound
        if expected_version not in (None, skill.version):
            raise PreconditionFailed
        yield skill


def _new_version(skill: Skill, actor: Actor, *, now: datetime) -> SkillVersion:
    return SkillVersion.objects.create(
        tenant_id=skill.tenant_id,
        skill=skill,
        number=skill.next_number,
        actor_kind=actor.kind,
        actor_id=actor.id,
        created_at=now,
    )


def _serve(skill: Skill, version: SkillVersion, actor: Actor, *, now: datetime) -> None:
    """Put the version into use in place of what is."""
    before = SkillVersion.objects.filter(skill=skill, state=State.SERVED)
    replaced = before.values_list("number", flat=True).first()
    before.update(state=State.FORMER, served_until=now)
    base = trials.before(skill)
    version.state, version.replaced = State.SERVED, replaced
    version.reviewed_by, version.reviewed_at, version.served_from = actor.id, now, now
    version.base_succeeded, version.base_total = base.succeeded, base.total
    version.save()
    skill.status, skill.reason, skill.served = Status.SERVING, "", version.number


def _check(skill: Skill, version: SkillVersion) -> None:
    """Errors: Conflict, where the version says nothing, or what others must not read."""
    texts = serving.texts_of([version]).get(version.pk, ())
    if not serving.says_something(texts):
        raise Conflict(_("Nothing is left of this version: what it rested on is gone."))
    named = checking.naming(skill.tenant, [one.text for one in texts])
    if any(one.text in named or checking.alone(one.text) for one in texts):
        raise Conflict(
            _(
                "This version is not served: one of its texts names a person, holds personal data or a secret, or "
                "speaks to a model. Edit it first."
            )
        )


def _check_texts(skill: Skill, given: Sequence[EditedText]) -> None:
    """Errors: InvalidInput."""
    if len(given) > MOST_LINES:
        raise InvalidInput.at("/texts", _("Use at most %(most)d lines.") % {"most": MOST_LINES})
    if not any(one.section in (Section.STEP, Section.CHECK, Section.PITFALL) for one in given):
        raise InvalidInput.at("/texts", _("Leave at least one step, check or pitfall."))
    named = checking.naming(skill.tenant, [one.text for one in given])
    for one in given:
        if one.text in named or checking.alone(one.text) or checking.is_forbidden(skill.tenant, one.text):
            detail = _(
                "“%(text)s” is not kept: it is too long, names a person, holds personal data or a secret, speaks to a "
                "model, or the tenant forbids it."
            )
            raise InvalidInput.at("/texts", detail % {"text": one.text[:80]})


def _decided(skill: Skill, verb: str, actor: Actor, *, now: datetime, number: int, waits: bool = False) -> None:
    if waiting(skill):
        # Also one that an earlier decision left waiting.
        skill.waits_since = skill.waits_since or now
    elif not waits:
        skill.waits_since = None
    skill.version, skill.changed_at = skill.version + 1, now
    skill.save()
    audit.record(actor=actor, verb=verb, target=skill, now=now, counts={"number": number})
