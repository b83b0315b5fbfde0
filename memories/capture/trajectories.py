"""Trajectories: what an agent did for a task is stored as turns are, step by step, with how it came out.

Secrets and invisible characters are cut out of every text and value before anything is stored, and then what is too
long. Nothing in them is a statement of the person, and nothing of them is extracted. The outcome is what the strongest
says who says anything: the application, the last test run, the person (text/outcomes.py).
"""

import json
import re
import uuid
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from memories import conf
from memories.capture import get_or_create
from memories.capture.agents import note_agents
from memories.exceptions import NotFound, PersonRestricted, TooManySteps, TooManyTrajectories
from memories.invisible import strip_invisible, visible_json
from memories.models import SENT_AT, EndUser, Session, Tenant, Trajectory, TrajectoryStep, Turn
from memories.models.conversations.trajectories import (
    LONGEST_ARGUMENTS,
    LONGEST_CONTENT,
    LONGEST_FAMILY,
    LONGEST_REASON,
    LONGEST_SKILL,
    LONGEST_TASK,
    LONGEST_TOOL,
    MOST_SKILLS,
)
from memories.skills import trials
from memories.telemetry.families import TRAJECTORIES
from memories.text import outcomes, signal_phrases
from memories.text.outcomes import Outcome
from memories.text.secrets import redaction
from memories.trust import Trust

LONGEST_ID = 255
Kind, Road = TrajectoryStep.Kind, Trajectory.Road
# A longer message is a document, or another task.
LONGEST_REPLY = 2_000
# Kinds of signals by which the person says how it came out.
_SAYING = frozenset({"correction", "reinforcement"})
# Trajectories of a session about which the person's next words may be.
_LAST = 3
# Of arguments that are written as a text.
_DEEPEST, _HIGHEST = 64, 2**63
_WHOLE = re.compile(r"-?[0-9]+")
_OUTCOME = ["outcome", "outcome_source", "outcome_reason"]


@dataclass(frozen=True)
class PostedStep:
    """One step as posted; `arguments` are any JSON value or a text."""

    kind: str
    tool: str = ""
    call_id: str = ""
    arguments: Any = None
    content: str = ""
    exit_code: int | None = None
    is_error: bool = False
    at: datetime | None = None


@dataclass(frozen=True)
class PostedTrajectory:
    """A trajectory as posted; an `agent_id`, `session_id`, `external_id` or `family` of "" means none."""

    task: str
    agent_id: str = ""
    session_id: str = ""
    external_id: str = ""
    family: str = ""
    outcome: Outcome | None = None
    skills: Sequence[str] = ()
    steps: Sequence[PostedStep] = ()
    started_at: datetime | None = None
    ended_at: datetime | None = None
    road: str = Road.API


@dataclass(frozen=True)
class TrajectoryReceipt:
    """What became of a post: the row, None where capture is off; how many steps were stored and how many it had
    already; how many secrets were cut out, and how many texts were cut for their length."""

    trajectory: Trajectory | None
    duplicate: bool = False
    accepted: int = 0
    duplicates: int = 0
    redactions: int = 0
    cut: int = 0


@dataclass
class _Cleaner:
    """Texts and values as they are stored; counts."""

    redactions: int = 0
    cut: int = 0

    def text(self, text: str, *, longest: int) -> str:
        clean, count = redaction.redact_text(strip_invisible(text)) if text else ("", 0)
        self.redactions += count
        return clean[:longest]

    def step(self, posted: PostedStep) -> TrajectoryStep:
        found = redaction.redact_message(
            content=strip_invisible(posted.content),
            name=strip_invisible(posted.tool),
            tool_call_id=strip_invisible(posted.call_id),
            metadata={"arguments": visible_json(_read(posted.arguments))},
        )
        self.redactions += found.count
        # An object, or a text; where that is too long, its beginning.
        arguments, beyond = found.metadata["arguments"], 0
        if arguments is not None:
            text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            beyond = max(0, len(text) - LONGEST_ARGUMENTS)
            if beyond or not isinstance(arguments, dict):
                arguments = text[:LONGEST_ARGUMENTS]
        content = found.content[:LONGEST_CONTENT]
        beyond += len(found.content) - len(content)
        self.cut += bool(beyond)
        code = posted.exit_code
        if code is None and posted.kind == Kind.TOOL_RESULT:
            code = outcomes.exit_code_in(found.content)
        return TrajectoryStep(
            kind=posted.kind,
            tool=found.name[:LONGEST_TOOL],
            call_id=found.tool_call_id[:LONGEST_ID],
            arguments=arguments,
            content=content,
            exit_code=code,
            is_error=posted.is_error,
            cut=beyond,
            at=posted.at,
        )


def _read(arguments: Any) -> Any:
    """Arguments as an object, where a model gave them as its text: then the names in it tell what is a secret. What the
    database, or an answer, could not have as JSON stays a text."""
    if not isinstance(arguments, str) or not arguments.lstrip().startswith(("{", "[")):
        return arguments
    try:
        given = json.loads(arguments, parse_constant=_number, parse_float=_number, parse_int=_number)
    except (ValueError, RecursionError):
        return arguments
    return given if _is_shallow(given) else arguments


def _number(digits: str) -> int | float:
    """Errors: ValueError, where another reader could not have it: NaN, infinity, and what 64 bits do not hold."""
    value = float(digits)
    if not isfinite(value) or abs(value) >= _HIGHEST:
        raise ValueError
    return int(digits) if _WHOLE.fullmatch(digits) else value


def _is_shallow(value: Any) -> bool:
    """Whether it is nested no deeper than what is posted may be. Level by level: depth must not exhaust the stack."""
    level = [value]
    for _depth in range(_DEEPEST):
        level = [
            inner
            for one in level
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return True
    return False


def store_trajectory(
    *, tenant: Tenant, user_id: str, posted: PostedTrajectory, now: datetime, trust: str = Trust.USER
) -> TrajectoryReceipt:
    """Store a trajectory; the person is created where missing. One whose `external_id` the person has already is
    answered as it is stored.

    Errors, with nothing stored: PersonRestricted, Erased, TooManyTrajectories, TooManySteps, TooManySecrets.
    """
    cleaner = _Cleaner()
    steps = [cleaner.step(step) for step in posted.steps]
    row, stated = _row(posted, cleaner, now=now, trust=trust), _stated(posted.outcome, cleaner)
    if not tenant.capture:
        return TrajectoryReceipt(None)
    note_agents(tenant, [posted.agent_id])
    with _person(tenant, user_id, now=now) as person:
        if not person.capture:
            return TrajectoryReceipt(None)
        known = _known(person, posted.external_id)
        if known:
            TRAJECTORIES.count("duplicate")
            return TrajectoryReceipt(known, duplicate=True, duplicates=len(steps))
        most = conf.rules(person.tenant).trajectories
        if most and Trajectory.objects.of(person.tenant, person).count() >= most:
            detail = _("A person can have %(most)d trajectories. Delete some, or have the limit raised.")
            raise TooManyTrajectories(detail % {"most": most})
        row.tenant, row.end_user = person.tenant, person
        row.save(force_insert=True)
        stored, doubles = _append(row, steps)
        _settle(row, stored, stated)
        row.save(update_fields=["step_count", *_OUTCOME])
        trials.end(row, now=now)
        transaction.on_commit(lambda: TRAJECTORIES.count("stored"))
    return TrajectoryReceipt(
        row, accepted=len(stored), duplicates=doubles, redactions=cleaner.redactions, cut=cleaner.cut
    )


def append_steps(
    *,
    tenant: Tenant,
    trajectory_id: uuid.UUID,
    posted: Sequence[PostedStep] = (),
    outcome: Outcome | None = None,
    skills: Sequence[str] = (),
    ended_at: datetime | None = None,
    now: datetime,
) -> TrajectoryReceipt:
    """Add steps and skills, and state the outcome. A call, or a result, whose `call_id` the trajectory has already is
    not stored again.

    Errors, with nothing stored: NotFound, PersonRestricted, TooManySteps, TooManySecrets.
    """
    cleaner = _Cleaner()
    steps = [cleaner.step(step) for step in posted]
    stated, named = _stated(outcome, cleaner), _skills(skills, cleaner)
    with transaction.atomic():
        row = locked_trajectory(trajectory_id, tenant)
        if not (tenant.capture and row.end_user.capture):
            return TrajectoryReceipt(None)
        stored, doubles = _append(row, steps)
        row.skills_named = list(dict.fromkeys([*row.skills_named, *named]))[:MOST_SKILLS]
        row.ended_at = ended_at or row.ended_at
        row.updated_at = now
        _settle(row, stored, stated)
        row.save(update_fields=["step_count", "skills_named", "ended_at", "updated_at", *_OUTCOME])
        trials.end(row, now=now)
    return TrajectoryReceipt(
        row, accepted=len(stored), duplicates=doubles, redactions=cleaner.redactions, cut=cleaner.cut
    )


def locked_trajectory(trajectory_id: uuid.UUID, tenant: Tenant, *, restricted: bool = False) -> Trajectory:
    """The person, then the trajectory, locked; in a transaction. `restricted`: also of somebody who is. Errors:
    NotFound, PersonRestricted."""
    rows = Trajectory.objects.filter(pk=trajectory_id, tenant=tenant)
    owner = _owner(rows.values_list("end_user", flat=True).first())
    if owner is None:
        raise NotFound
    if owner.restricted_at and not restricted:
        raise PersonRestricted
    # Not its key: whoever edits a skill holds the skill, for which this may wait, and refers to the trajectory.
    found = rows.filter(end_user=owner).select_for_update(of=("self",), no_key=True).first()
    if found is None:
        raise NotFound
    found.tenant, found.end_user = owner.tenant, owner
    return found


def may_settle(texts: Sequence[str], signals: Collection[str]) -> bool:
    """Whether these words of the person, with their signals, may say how a task came out."""
    short = [text for text in texts if len(text) <= LONGEST_REPLY]
    return bool(short) and (not _SAYING.isdisjoint(signals) or outcomes.is_reply(short))


def settle_session(session: Session) -> int:
    """Let what the person said in the session decide about its trajectories about which nobody stronger has; how many
    changed. In a transaction of its own: it locks the person."""
    waiting = Trajectory.objects.of_session(session).filter(
        Q(outcome_source="") | Q(outcome_source=Trajectory.OutcomeSource.PERSON)
    )
    # The last ones: what is said now is about them.
    ids = list(waiting.order_by("-created_at", "-id").values_list("pk", flat=True)[:_LAST])
    changed = 0
    for pk in ids:
        with transaction.atomic():
            try:
                row = locked_trajectory(pk, session.tenant)
            except (NotFound, PersonRestricted):
                continue
            before = row.outcome, row.outcome_source
            _settle(row, [], None)
            if (row.outcome, row.outcome_source) != before:
                row.save(update_fields=_OUTCOME)
                trials.end(row, now=session.last_turn_at or row.updated_at)
                changed += 1
    return changed


def _row(posted: PostedTrajectory, cleaner: _Cleaner, *, now: datetime, trust: str) -> Trajectory:
    return Trajectory(
        agent_id=posted.agent_id,
        session_id=posted.session_id,
        external_id=posted.external_id,
        road=posted.road,
        trust=trust,
        task=cleaner.text(posted.task, longest=LONGEST_TASK),
        family=cleaner.text(posted.family, longest=LONGEST_FAMILY).strip(),
        skills_named=_skills(posted.skills, cleaner),
        started_at=posted.started_at or now,
        ended_at=posted.ended_at,
        created_at=now,
        updated_at=now,
    )


def _stated(outcome: Outcome | None, cleaner: _Cleaner) -> Outcome | None:
    return outcome and outcome._replace(reason=cleaner.text(outcome.reason, longest=LONGEST_REASON))


def _skills(names: Sequence[str], cleaner: _Cleaner) -> list[str]:
    found = (" ".join(cleaner.text(name, longest=LONGEST_SKILL).split()) for name in names)
    return list(dict.fromkeys(name for name in found if name))[:MOST_SKILLS]


@contextmanager
def _person(tenant: Tenant, user_id: str, *, now: datetime) -> Iterator[EndUser]:
    """Who has the memories of this id, locked until the end of the transaction. Errors: PersonRestricted, Erased."""
    with transaction.atomic():
        owner = None
        while owner is None:
            named, _made = get_or_create.end_user(tenant=tenant, user_id=user_id, now=now)
            # Gone meanwhile: it is looked up again, and refused where a tombstone says so.
            owner = _owner(named.pk)
        if owner.restricted_at:
            raise PersonRestricted
        yield owner


def _owner(person_id: uuid.UUID | None) -> EndUser | None:
    """The person, or whom they were merged into, locked; None: gone."""
    people = EndUser.objects.select_for_update(of=("self",), no_key=True).select_related("tenant")
    found = people.filter(pk=person_id).first() if person_id else None
    return _owner(found.merged_into_id) if found and found.merged_into_id else found


def _known(person: EndUser, external_id: str) -> Trajectory | None:
    if not external_id:
        return None
    found = Trajectory.objects.of(person.tenant, person).filter(external_id=external_id).first()
    if found:
        found.tenant, found.end_user = person.tenant, person
    return found


def _append(row: Trajectory, steps: Sequence[TrajectoryStep]) -> tuple[list[TrajectoryStep], int]:
    """Number the steps that the trajectory does not have and store them; and how many it had. Errors: TooManySteps."""
    named = {(step.call_id, step.kind) for step in steps if step.call_id}
    known: set[tuple[str, str]] = set()
    if named and row.step_count:
        there = TrajectoryStep.objects.filter(trajectory=row, call_id__in={call_id for call_id, _kind in named})
        known = set(there.values_list("call_id", "kind"))
    new: list[TrajectoryStep] = []
    for step in steps:
        key = (step.call_id, str(step.kind))
        if step.call_id and key in known:
            continue
        known.add(key)
        new.append(step)
    most = conf.rules(row.tenant).trajectory_steps
    if row.step_count + len(new) > most:
        detail = _("A trajectory can have %(most)d steps. Begin another one, or have the limit raised.")
        raise TooManySteps(detail % {"most": most})
    for step in new:
        row.step_count += 1
        step.tenant, step.trajectory, step.position = row.tenant, row, row.step_count
    TrajectoryStep.objects.bulk_create(new, batch_size=200)
    return new, len(steps) - len(new)


def _settle(row: Trajectory, new: Sequence[TrajectoryStep], stated: Outcome | None) -> None:
    """Set what the strongest says: the application now, the last test run among the new steps, what the person said in
    the session since it ended."""
    known = Outcome(row.outcome, row.outcome_source, row.outcome_reason)
    held = known
    if row.session_id and not stated and held.source in ("", outcomes.PERSON):
        held = outcomes.stronger(held, _said(row))
    held = outcomes.stronger(held, _tested(row, new))
    if stated:
        held = outcomes.stronger(held, stated)
    row.outcome, row.outcome_source = held.result, held.source
    row.outcome_reason = held.reason[:LONGEST_REASON]


def _tested(row: Trajectory, new: Sequence[TrajectoryStep]) -> Outcome | None:
    """What the last test run among the new steps says; calls of earlier posts are looked up."""
    if not any(step.exit_code is not None for step in new):
        return None
    here = {step.call_id for step in new if step.kind == Kind.TOOL_CALL}
    asked = {step.call_id for step in new if step.call_id and step.kind == Kind.TOOL_RESULT} - here
    calls = TrajectoryStep.objects.filter(trajectory=row, kind=Kind.TOOL_CALL, position__lt=new[0].position)
    before = list(calls.filter(call_id__in=asked)) if asked else []
    if any(step.kind == Kind.TOOL_RESULT and not step.call_id for step in new):
        before += calls.filter(call_id="").order_by("-position")[:1]
    return outcomes.of_tests([_told(step) for step in (*before, *new) if step.kind in _OF_TOOLS])


_OF_TOOLS = (Kind.TOOL_CALL, Kind.TOOL_RESULT)


def _told(step: TrajectoryStep) -> outcomes.Step:
    is_call = step.kind == Kind.TOOL_CALL
    return outcomes.Step(is_call, step.tool, step.call_id, step.arguments if is_call else None, step.exit_code)


def _said(row: Trajectory) -> Outcome | None:
    """What the person's next words in the session say; None without any."""
    turns = Turn.objects.filter(
        tenant=row.tenant_id,
        session__tenant=row.tenant_id,
        session__end_user=row.end_user_id,
        session__agent_id=row.agent_id,
        session__external_id=row.session_id,
    )
    since = row.ended_at or row.updated_at
    later = turns.said().current().annotate(said_at=SENT_AT).filter(said_at__gt=max(since, row.started_at))
    # What begins the next task may still be about this one; what comes after that is not.
    beside = Trajectory.objects.filter(tenant=row.tenant_id, end_user=row.end_user_id, agent_id=row.agent_id)
    following = beside.filter(session_id=row.session_id, started_at__gt=row.started_at).order_by("started_at").first()
    if following:
        later = later.filter(said_at__lte=following.started_at)
    texts = [turn.own_text[:LONGEST_REPLY] for turn in later.order_by("number")[: outcomes.MOST_REPLIES]]
    return outcomes.of_replies(texts, signal_phrases.patterns_of(row.tenant.signal_phrases))
