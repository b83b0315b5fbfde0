"""Texts of skills rest on trajectories: with the last of these a text goes, from all versions that had it.

Whoever deletes trajectories deletes their evidence before, and calls `settle()` in the same transaction. A text without
evidence is not served, whether or not that has happened yet.
"""

import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import datetime
from functools import reduce
from operator import or_
from typing import NamedTuple

from django.db.models import Q

from memories import audit
from memories.models import Skill, SkillEvidence, SkillPass, SkillText, SkillVersion, Tenant
from memories.skills import serving, trials

State, Status = SkillVersion.State, Skill.Status


def forget(trajectories: Collection[uuid.UUID], *, now: datetime, passages: Collection[str] | None = None) -> int:
    """Nothing rests on these trajectories any more, which are about to be deleted; returns how many texts went.

    `passages`: they stay without these, and what repeats one of them rests on them no more. In the transaction that
    changes them.
    """
    if not trajectories or passages == []:
        return 0
    rows = SkillEvidence.objects.filter(trajectory__in=list(trajectories))
    if passages is not None:
        repeats = (Q(text__text__contains=passage) for passage in passages)
        rows = rows.filter(reduce(or_, repeats))
    skills = set(rows.order_by().values_list("text__of_version__skill", flat=True))
    if not skills:
        return 0
    rows.delete()
    return settle(skills, now=now)


def unfounded(tenant: Tenant | uuid.UUID) -> set[uuid.UUID]:
    """The skills of a tenant that have texts which rest on nothing any more."""
    rows = SkillText.objects.unfounded().filter(tenant=tenant)
    return set(rows.order_by().values_list("of_version__skill", flat=True).distinct())


def settle(skills: Iterable[uuid.UUID], *, now: datetime) -> int:
    """Delete what rests on nothing in these skills; how many texts. In a transaction; safe to repeat.

    A version in use that lost a text goes on as a new one, whose trials begin anew. With its last line a skill is
    withdrawn, and one that was never served is gone.
    """
    gone = 0
    rows = Skill.objects.select_for_update(of=("self",)).select_related("tenant").filter(pk__in=list(skills))
    for skill in rows.order_by("pk"):
        texts = SkillText.objects.unfounded().filter(of_version__skill=skill)
        lost = set(texts.values_list("of_version", flat=True))
        if not lost:
            continue
        gone += texts.count()
        texts.delete()
        _follow(skill, lost, now=now)
    return gone


def _follow(skill: Skill, lost: set[uuid.UUID], *, now: datetime) -> None:
    """What becomes of the versions that lost a text."""
    versions = list(SkillVersion.objects.filter(skill=skill, pk__in=lost).order_by("number"))
    texts = serving.texts_of(versions)
    for version in versions:
        rest = texts.get(version.pk, ())
        if version.state == State.SERVED and serving.says_something(rest):
            _go_on(skill, version, rest, now=now)
        elif version.state == State.SERVED:
            trials.withdraw(skill, Skill.Reason.NO_EVIDENCE, actor=trials.NOBODY, now=now)
        elif version.state == State.PROPOSED and not serving.says_something(rest):
            version.delete()
    _leave(skill, now=now)


def _go_on(skill: Skill, version: SkillVersion, texts: tuple[SkillText, ...], *, now: datetime) -> None:
    """Serve what is left as a version of its own: it was reviewed, and is another text to try."""
    SkillVersion.objects.filter(pk=version.pk).update(state=State.FORMER, served_until=now)
    new = SkillVersion.objects.create(
        tenant_id=skill.tenant_id,
        skill=skill,
        number=skill.next_number,
        state=State.SERVED,
        actor_kind=trials.NOBODY.kind,
        actor_id=trials.NOBODY.id,
        extractor=version.extractor,
        prompt_version=version.prompt_version,
        base_total=version.base_total,
        base_succeeded=version.base_succeeded,
        created_at=now,
        reviewed_by=version.reviewed_by,
        reviewed_at=version.reviewed_at,
        replaced=version.number,
        served_from=now,
    )
    copy_texts(texts, new)
    skill.served, skill.changed_at, skill.version = new.number, now, skill.version + 1
    skill.save()
    audit.record(actor=trials.NOBODY, verb="edit", target=skill, now=now, counts={"version": new.number})


class NewText(NamedTuple):
    """A text for a version, and the trajectories that it rests on."""

    section: str
    text: str
    rests_on: Iterable[uuid.UUID]
    is_own: bool = False


def store_texts(texts: Iterable[NewText], version: SkillVersion) -> None:
    """Give a version these texts in this order, with what they rest on."""
    found = list(texts)
    made = [
        SkillText(
            tenant_id=version.tenant_id,
            of_version=version,
            section=one.section,
            position=place,
            text=one.text,
            is_own=one.is_own,
        )
        for place, one in enumerate(found, start=1)
    ]
    SkillText.objects.bulk_create(made)
    SkillEvidence.objects.bulk_create(
        SkillEvidence(tenant_id=version.tenant_id, text=text, trajectory_id=trajectory)
        for text, one in zip(made, found, strict=True)
        for trajectory in dict.fromkeys(one.rests_on)
    )


def behind(texts: Iterable[uuid.UUID]) -> dict[uuid.UUID, list[uuid.UUID]]:
    """The trajectories that each of these texts rests on; none for one that is the operator's own."""
    found: dict[uuid.UUID, list[uuid.UUID]] = defaultdict(list)
    for text, trajectory in SkillEvidence.objects.filter(text__in=list(texts)).values_list("text", "trajectory"):
        found[text].append(trajectory)
    return found


def copy_texts(texts: Iterable[SkillText], version: SkillVersion) -> None:
    """Give a version these texts, with what they rest on."""
    found = list(texts)
    rests = behind(one.pk for one in found)
    store_texts((NewText(one.section, one.text, rests[one.pk], one.is_own) for one in found), version)


def _leave(skill: Skill, *, now: datetime) -> None:
    """Of a skill without any line nothing is left but that there was one; of one that was never served, nothing."""
    versions = list(SkillVersion.objects.filter(skill=skill))
    texts = serving.texts_of(versions)
    if any(serving.says_something(rest) for rest in texts.values()):
        if not any(one.state == State.PROPOSED for one in versions):
            if skill.status == Status.PROPOSED:
                skill.delete()
            elif skill.status != Status.WITHDRAWN and skill.waits_since:
                skill.waits_since = None
                skill.save(update_fields=["waits_since"])
        return
    if skill.served is None:
        skill.delete()
        return
    SkillText.objects.filter(of_version__skill=skill).delete()
    # Its name was made of a label that perhaps nobody else has.
    SkillPass.objects.filter(tenant=skill.tenant_id, family=skill.family).delete()
    skill.name, skill.family, skill.changed_at = f"withdrawn-{skill.pk.hex[-12:]}", "", now
    if skill.status == Status.WITHDRAWN and skill.reason == Skill.Reason.NO_EVIDENCE:
        skill.waits_since = None
    skill.save()
