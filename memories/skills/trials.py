"""Trials of skills: which sessions had one, how they ended, and what follows.

A trial is noted once for a session, when it is first given the skill or kept without it. The outcome comes with the
session's trajectory. Whenever one comes, the skill is compared with what was without it, and withdrawn if it is worse.
"""

import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import IntegrityError
from django.db.models import Count, Q

from memories import audit, outbox
from memories.audit import Actor
from memories.models import ActorKind, EndUser, Event, Skill, SkillTrial, SkillVersion, Trajectory
from memories.outbox import WebhookEvent
from memories.skills import comparing, serving
from memories.skills.comparing import Rate
from memories.skills.serving import Offer, Session

Arm, Via, Outcome = SkillTrial.Arm, SkillTrial.Via, Trajectory.Outcome
KNOWN = (Outcome.SUCCEEDED, Outcome.FAILED)
# Where no session is named, a trial belongs to a trajectory of the agent that began at most so long after it.
SOON = timedelta(hours=1)
NOBODY = Actor(kind=ActorKind.COMMAND, id="skills")


@dataclass(frozen=True)
class Figures:
    """What trials of a version say. `before`: of the kind of task before it was served."""

    served: Rate
    control: Rate
    before: Rate
    # Sessions without an outcome yet.
    open: int = 0

    @property
    def without(self) -> Rate:
        """What it is compared with: sessions that were kept without it, once they are enough; until then what was
        before."""
        return self.control if self.control.total >= comparing.LEAST else self.before

    @property
    def is_worse(self) -> bool:
        return comparing.is_worse(self.served, self.without)

    @property
    def difference(self) -> tuple[float, float]:
        return comparing.difference(self.served, self.without)


def note(offered: Offer, via: SkillTrial.Via, *, now: datetime, read: Collection[str] = ()) -> None:
    """Note that the session was given what is offered, or kept without it; `read`: names of which it got the text.

    Nothing is noted of nobody. Two statements where all is noted already, or one.
    """
    session, person = offered.session, offered.session.person
    versions = {one.version.pk: Arm.SERVED for one in offered.served} | {one.pk: Arm.CONTROL for one in offered.control}
    if person is None or not versions:
        return
    whose = {"end_user": person, "agent_id": session.agent_id, "session_id": session.session_id}
    noted = SkillTrial.objects.filter(of_version__in=versions, **whose)
    noted = noted if session.session_id else noted.filter(ended_at=None)
    known = {one.of_version_id: one for one in noted}
    reading = {one.version.pk for one in offered.served if one.name in read}
    missing = [
        SkillTrial(
            tenant_id=session.tenant.pk,
            of_version_id=pk,
            arm=arm,
            via=via,
            noted_at=now,
            read_at=now if pk in reading else None,
            **whose,
        )
        for pk, arm in versions.items()
        if pk not in known
    ]
    try:
        if missing:
            SkillTrial.objects.bulk_create(missing, ignore_conflicts=True)
        if begun := [known[pk].pk for pk in reading & known.keys() if known[pk].read_at is None]:
            SkillTrial.objects.filter(pk__in=begun).update(read_at=now, via=via)
    except IntegrityError:
        # The person was erased, or the version went, since it was looked up: there is nothing to note.
        return


def end(trajectory: Trajectory, *, now: datetime) -> list[Skill]:
    """Take over the outcome of a stored trajectory; returns the skills that were withdrawn for it.

    In the transaction that stored it, or its outcome. It may come again, with another outcome.
    """
    person = trajectory.end_user
    people = list(EndUser.objects.with_aliases(person.pk).values_list("pk", flat=True))
    _note_stated(trajectory, now=now)
    rows = SkillTrial.objects.filter(tenant=trajectory.tenant_id, end_user__in=people)
    mine = Q(trajectory=trajectory)
    until = trajectory.ended_at or now
    if trajectory.session_id:
        # What had come to an end before the skill was given says nothing of it.
        last = max(until, trajectory.updated_at) if trajectory.ended_at else trajectory.updated_at
        mine |= Q(session_id=trajectory.session_id, noted_at__lte=last)
    mine |= Q(
        session_id="",
        agent_id=trajectory.agent_id,
        ended_at=None,
        noted_at__gte=trajectory.started_at - SOON,
        noted_at__lte=until,
    )
    found = list(rows.filter(mine).select_related("of_version__skill"))
    ended = [one for one in found if _counts(one, trajectory)]
    known = trajectory.outcome in KNOWN
    for trial in ended:
        trial.outcome, trial.trajectory = trajectory.outcome, trajectory
        trial.ended_at = (trial.ended_at or now) if known else None
    SkillTrial.objects.bulk_update(ended, ["outcome", "trajectory", "ended_at"])
    if not known:
        return []
    return withdraw_worse({one.of_version.skill_id for one in ended}, now=now)


def withdraw_worse(skills: Iterable[uuid.UUID], *, now: datetime) -> list[Skill]:
    """Withdraw those of these skills whose version in use is worse than what was without it; in a transaction."""
    withdrawn = []
    rows = (
        Skill.objects.select_for_update(of=("self",)).select_related("tenant").filter(pk__in=sorted(map(str, skills)))
    )
    for skill in rows.order_by("pk"):
        version = version_in_use(skill)
        if skill.status == Skill.Status.SERVING and version and figures(version).is_worse:
            withdraw(skill, Skill.Reason.BELOW, actor=NOBODY, now=now)
            withdrawn.append(skill)
    return withdrawn


def withdraw(skill: Skill, reason: Skill.Reason, *, actor: Actor, now: datetime) -> None:
    """Serve a locked skill to nobody from now on, and ask an operator unless one decided it; its versions stay."""
    SkillVersion.objects.filter(skill=skill, state=SkillVersion.State.SERVED).update(
        state=SkillVersion.State.FORMER, served_until=now
    )
    skill.status, skill.reason, skill.changed_at = Skill.Status.WITHDRAWN, reason, now
    skill.version += 1
    if not actor.is_operator:
        skill.waits_since = skill.waits_since or now
    skill.save()
    audit.record(actor=actor, verb="withdraw", target=skill, now=now)
    told = WebhookEvent(Event.SKILL_WITHDRAWN, {"skill_id": skill.pk, "reason": reason})
    outbox.publish(skill.tenant_id, [told], now=now, tenant=skill.tenant)


def version_in_use(skill: Skill) -> SkillVersion | None:
    """The version that is served, or was last."""
    return SkillVersion.objects.filter(skill=skill, number=skill.served).first() if skill.served else None


def figures(version: SkillVersion) -> Figures:
    """One statement."""
    return figures_of([version])[version.pk]


def figures_of(versions: Sequence[SkillVersion]) -> dict[uuid.UUID, Figures]:
    """Of each of these versions, by its id; one statement."""
    counted: dict[uuid.UUID, dict[tuple[str, str], int]] = {}
    rows = SkillTrial.objects.filter(of_version__in=versions).order_by()
    for pk, arm, outcome, count in rows.values_list("of_version", "arm", "outcome").annotate(count=Count("pk")):
        counted.setdefault(pk, {})[arm, outcome] = count
    return {one.pk: _figures(one, counted.get(one.pk, {})) for one in versions}


def _figures(version: SkillVersion, counted: dict[tuple[str, str], int]) -> Figures:
    def rate(arm: str) -> Rate:
        succeeded, failed = (counted.get((arm, outcome), 0) for outcome in KNOWN)
        return Rate(succeeded, succeeded + failed)

    return Figures(
        rate(Arm.SERVED),
        rate(Arm.CONTROL),
        Rate(version.base_succeeded, version.base_total),
        sum(count for (_arm, outcome), count in counted.items() if outcome not in KNOWN),
    )


def before(skill: Skill) -> Rate:
    """How the trajectories of the skill's kind of task came out until now that had none of its trials."""
    rows = Trajectory.objects.filter(tenant=skill.tenant_id, family=skill.family, outcome__in=KNOWN)
    rows = rows.exclude(trials__arm=Arm.SERVED)
    if skill.scope == Skill.Scope.AGENT:
        rows = rows.filter(agent_id=skill.agent_id)
    elif skill.scope == Skill.Scope.GROUP:
        rows = rows.filter(end_user__memberships__group=skill.group_id)
    return Rate(rows.filter(outcome=Outcome.SUCCEEDED).count(), rows.count())


def _counts(trial: SkillTrial, trajectory: Trajectory) -> bool:
    """Whether the trajectory is of a task that the skill is for: of its kind, or one whose agent read it."""
    if trial.agent_id and trajectory.agent_id and trial.agent_id != trajectory.agent_id:
        # Another agent's session of the same name.
        return False
    family = trial.of_version.skill.family
    return not (family and trajectory.family) or family == trajectory.family or trial.read_at is not None


def _note_stated(trajectory: Trajectory, *, now: datetime) -> None:
    """Trials of skills that the trajectory names, if it could have them."""
    names = {name for name in trajectory.skills_named if isinstance(name, str)}
    if not names:
        return
    session = Session(trajectory.tenant, trajectory.end_user, trajectory.agent_id, trajectory.session_id)
    offered = serving.offer(session)
    named = Offer(session, [one for one in offered.served if one.name in names])
    note(named, Via.STATED, now=now, read=names)
