"""The background pass that proposes skills from the trajectories of a kind of task.

The row of a pass is the queue, under a lease, as that of a dream is. Trajectories are gathered and the model is asked
with no transaction open; without a model rules find what they have in common. One short transaction stores what may be
shared: it is served to nobody before an operator approves it.
"""

import itertools
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Count, F, Max, Q, Window
from django.db.models.functions import Now, RowNumber
from django_q.tasks import async_task
from pydantic import ValidationError

from memories import audit, conf, outbox
from memories.curation.skills import checking
from memories.curation.skills.checking import Refusal
from memories.db import tenancy
from memories.exceptions import ModelError
from memories.llm import client
from memories.llm.prompts import skills as prompt
from memories.llm.prompts.framing import Message
from memories.llm.prompts.skills import ProposedSkill, ProposedText, StepInput, TrajectoryInput
from memories.models import (
    Event,
    GroupMember,
    MemoryOf,
    ModelUse,
    Session,
    Skill,
    SkillPass,
    SkillText,
    SkillVersion,
    Tenant,
    Trajectory,
    TrajectoryStep,
)
from memories.models.memories.skills import LONGEST_NAME
from memories.outbox import WebhookEvent
from memories.queue import circuit_breaker, leases, spending
from memories.queue.background_calls import count, may_ask, note_failure, thinking_config_of
from memories.queue.leases import Lease
from memories.queue.spending import Spent
from memories.skills import attempts, rendering, rules, serving
from memories.skills.attempts import Attempt, SaidWords
from memories.skills.founding import NewText, store_texts
from memories.skills.rules import Line
from memories.skills.trials import KNOWN, NOBODY
from memories.telemetry import traces

TASK = "memories.tasks.propose_skills"
State, Section, Outcome = SkillPass.State, SkillText.Section, Trajectory.Outcome
RULES = "rules"
# Of a pass, the newest.
MOST_TRAJECTORIES, MOST_OF_ONE = 40, 20
MOST_LINES = 16
# What is behind a text, at least.
LEAST_BEHIND = 2
# Passes that ended so long ago are deleted.
KEPT = timedelta(days=30)
_PAGE = 20


@dataclass(kw_only=True)
class PassLease(Lease[SkillPass]):
    """A pass that is ours."""

    rules: conf.Rules
    config: conf.LLMConfig


@dataclass(frozen=True)
class Draft:
    """What may be shared of a proposal, and why the rest may not."""

    lines: Sequence[Line]
    refused: Counter[str]

    @property
    def is_something(self) -> bool:
        return any(line.section in prompt.SECTIONS for line in self.lines)


def enqueue() -> None:
    """Send a worker the task that looks for skills."""
    async_task(TASK)


def run_slice(*, now: datetime, seconds: float) -> bool:
    """Carry on passes that nobody holds and begin due ones, for about so long; True when more can be done now.

    Errors: LeaseLost.
    """
    until = time.monotonic() + seconds
    SkillPass.objects.filter(finished_at__lt=now - KEPT).delete()
    for row in _next(now=now):
        run(row, now=now)
        if time.monotonic() > until:
            return True
    return False


def run(row: SkillPass, *, now: datetime) -> None:
    """Carry out one pass in this process, if nobody else does and its endpoint takes calls. Errors: LeaseLost."""
    work = _claim(row)
    if work is None:
        return
    with tenancy.of_tenant(work.row.tenant_id):
        if client.is_configured(work.config) and not may_ask(work.row.tenant, work.config, lease=work.lasts, now=now):
            # Nothing was tried: it waits for the next look.
            leases.release(work, attempts=0)
            return
        with traces.span("skills", tenant=work.row.tenant.slug):
            _propose(work, now=now)


def due(tenant: Tenant, *, now: datetime) -> list[str]:
    """The kinds of task with enough trajectories, also new ones, that nobody looked at for long enough."""
    numbers = conf.rules(tenant)
    rows = Trajectory.objects.filter(tenant=tenant, outcome__in=KNOWN, end_user__restricted_at=None).exclude(family="")
    rows_of_families = (
        rows.order_by()
        .values("family")
        .annotate(
            succeeded=Count("pk", filter=Q(outcome=Outcome.SUCCEEDED)),
            people=Count("end_user", distinct=True, filter=Q(outcome=Outcome.SUCCEEDED)),
            newest=Max("updated_at"),
        )
        .filter(succeeded__gte=numbers.skill_trajectories, people__gte=checking.LEAST_PEOPLE)
    )
    newest = {one["family"]: one["newest"] for one in rows_of_families.order_by("newest")}
    passes = SkillPass.objects.filter(tenant=tenant, family__in=newest).order_by().values_list("family")
    looked = dict(passes.annotate(last=Max("started_at")))
    waiting = Skill.objects.of(tenant).filter(family__in=newest, versions__state=SkillVersion.State.PROPOSED)
    passed = set(waiting.values_list("family", flat=True))
    before = now - timedelta(days=numbers.skill_days)
    found = (
        family
        for family, moment in newest.items()
        if family not in passed and (family not in looked or (looked[family] <= before and moment > looked[family]))
    )
    return list(found)[:_PAGE]


def begin(tenant: Tenant, family: str, *, now: datetime) -> SkillPass | None:
    """Insert a pass for workers to claim; None where one is at work already."""
    row = SkillPass(tenant=tenant, family=family, started_at=now)
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError:
        return None
    return row


def _next(*, now: datetime) -> Iterator[SkillPass]:
    """Passes to work on: those that began, then due ones of each tenant, which begin here."""
    yield from SkillPass.objects.running().free().order_by("started_at", "pk")
    for tenant in Tenant.objects.filter(numbers__skills=True, offboarded_at=None).order_by("pk"):
        for family in due(tenant, now=now):
            if row := begin(tenant, family, now=now):
                yield row


def _claim(row: SkillPass) -> PassLease | None:
    """Take the pass under a lease that outlasts a model call; None when it is over, or somebody else holds it."""
    with transaction.atomic():
        found = leases.lock(SkillPass.objects.running().free().select_related("tenant"), row.pk)
        if found is None:
            return None
        numbers = conf.rules(found.tenant)
        lasts = timedelta(seconds=numbers.lease_seconds)
        token = leases.take(found, give_up=partial(_end, state=State.FAILED, failure=leases.WORKER_LOST), lasts=lasts)
        if token is None:
            return None
        return PassLease(row=found, token=token, lasts=lasts, rules=numbers, config=thinking_config_of(found.tenant))


def _propose(work: PassLease, *, now: datetime) -> None:
    rows = gathered(work.row.tenant, work.row.family)
    found, owner = attempts.read(rows), work.config.tenant_id
    if len({one.person for one in found if one.succeeded}) < checking.LEAST_PEOPLE:
        circuit_breaker.release_probe(owner)
        leases.release(work, state=State.NOTHING, finished_at=Now(), attempts=0)
        return
    if not client.is_configured(work.config):
        _commit(work, rows, found, rule_lines(work.row.family, found), now=now)
        return
    try:
        completion = client.complete(
            messages=messages(work.row.family, found),
            answer=prompt.ANSWER,
            max_calls=max(1, work.rules.max_model_calls - 1),
            before_call=partial(leases.renew, work),
            config=work.config,
        )
    except ModelError as error:
        count(work.row.tenant, work.config, error, now=now)
        note_failure(error, work.config, about=work.row.pk)
        leases.release(work, state=State.FAILED, failure=error.code, finished_at=Now(), attempts=0)
        return
    count(work.row.tenant, work.config, completion, now=now)
    circuit_breaker.close(owner)
    work.row.extractor, work.row.calls = completion.extractor, completion.calls
    work.row.prompt_tokens, work.row.completion_tokens = completion.prompt_tokens, completion.completion_tokens
    _commit(work, rows, found, answered_lines(completion.answer, found), now=now)


def gathered(tenant: Tenant, family: str) -> list[Trajectory]:
    """The newest trajectories of the kind with a known outcome, of people whose data may be used.

    At most half are one person's, who must not crowd out the others. Those that belong to the memory of one agent are
    told to no other: among several agents' they are left out.
    """
    newest = F("updated_at").desc(), F("pk").desc()
    rows = Trajectory.objects.filter(tenant=tenant, family=family, outcome__in=KNOWN, end_user__restricted_at=None)
    ranked = rows.annotate(of_one=Window(RowNumber(), partition_by=F("end_user"), order_by=newest))
    chosen = ranked.filter(Q(of_one__lte=MOST_OF_ONE))
    found = list(chosen.order_by(*newest)[:MOST_TRAJECTORIES])
    if len({one.agent_id for one in found}) > 1:
        private = _private(tenant, found)
        found = [one for one in found if one.pk not in private]
    return found


def messages(family: str, found: Sequence[Attempt]) -> list[Message]:
    """The prompt. Who is who stands there as a number."""
    people = {person: number for number, person in enumerate(dict.fromkeys(one.person for one in found), start=1)}
    inputs = [
        TrajectoryInput(number, people[one.person], one.succeeded, one.task, [_step(step) for step in one.steps])
        for number, one in enumerate(found, start=1)
    ]
    return prompt.build(family=family, trajectories=inputs, most=MOST_LINES)


def rule_lines(family: str, found: Sequence[Attempt]) -> list[Line]:
    """What the rules propose: a title, when to use it, and their lines."""
    lines = rules.lines(found)
    if not lines:
        return []
    every = tuple(dict.fromkeys(one for line in lines for one in line.rests_on))
    return [
        Line(Section.TITLE, family, every, family),
        Line(Section.WHEN, f"Use it for tasks of the kind “{family}”.", every, family),
        *lines,
    ]


def answered_lines(answer: ProposedSkill, found: Sequence[Attempt]) -> list[Line]:
    """The texts of an answer whose form is right, each with the trajectories that it names and that were shown."""
    given: list[tuple[str, Any]] = [(Section.TITLE, answer.title), (Section.WHEN, answer.when)]
    given += [("", one) for one in answer.lines[:MOST_LINES]]
    lines = []
    for section, raw in given:
        try:
            item = ProposedText.model_validate(raw)
        except ValidationError:
            continue
        wanted = section or item.section.strip().lower()
        cited = [found[number - 1].id for number in sorted(set(item.trajectories)) if 1 <= number <= len(found)]
        text = rendering.one_line(item.text)
        if text and (section or wanted in prompt.SECTIONS):
            lines.append(Line(wanted, text, tuple(cited)))
    return lines


def drafted(tenant: Tenant, lines: Sequence[Line], found: Sequence[Attempt]) -> Draft:
    """What of these lines may be shared with others.

    Each must rest on trajectories of at least two people, and pass the checks of what a skill may say.
    """
    said, person_of = SaidWords(found), {one.id: one.person for one in found}
    named = checking.naming(tenant, [line.text for line in lines])
    refused: Counter[str] = Counter()
    kept: list[Line] = []
    for line in lines:
        reason = _refusal(tenant, line, said, person_of, named)
        if reason:
            refused[str(reason)] += 1
        elif not any(line.section == other.section and line.text == other.text for other in kept):
            kept.append(line)
    return Draft(kept, refused)


def _refusal(
    tenant: Tenant, line: Line, said: SaidWords, person_of: dict[uuid.UUID, uuid.UUID], named: set[str]
) -> Refusal | None:
    if line.text in named:
        return Refusal.PERSONAL
    if len(line.rests_on) < LEAST_BEHIND or len({person_of[one] for one in line.rests_on}) < checking.LEAST_PEOPLE:
        return Refusal.ONE_PERSON
    cited = said.of(line.rests_on)
    if found := checking.alone(line.text) or checking.refusal_of(line.said or line.text, said, cited):
        return found
    return Refusal.FORBIDDEN if checking.is_forbidden(tenant, line.text) else None


def _commit(
    work: PassLease, rows: Sequence[Trajectory], found: Sequence[Attempt], lines: Sequence[Line], *, now: datetime
) -> None:
    """What came of it and the end of the pass together. Errors: LeaseLost."""
    draft = drafted(work.row.tenant, lines, found)
    with transaction.atomic():
        row = leases.fence(work)
        for name in ("extractor", "calls", "prompt_tokens", "completion_tokens"):
            setattr(row, name, getattr(work.row, name))
        row.extractor = row.extractor or RULES
        row.read, row.refused = len(found), dict(draft.refused)
        behind = {one for line in draft.lines for one in line.rests_on}
        held = (
            Trajectory.objects.filter(pk__in=behind, end_user__restricted_at=None)
            .select_for_update(no_key=True, of=("self",))
            .order_by("pk")
        )
        is_whole = {one.pk for one in held} == behind
        # One was deleted meanwhile: the next look reads what is there.
        skill = store(work.row.tenant, row, rows, draft, now=now) if draft.is_something and is_whole else None
        _end(row, state=State.PROPOSED if skill else State.NOTHING)
        if row.calls:
            spent = Spent(row.prompt_tokens, row.completion_tokens)
            purpose, prices = ModelUse.Purpose.SKILLS, work.config.prices
            spending.note(row.tenant, purpose, calls=row.calls, spent=spent, prices=prices, now=now)


def store(tenant: Tenant, row: SkillPass, rows: Sequence[Trajectory], draft: Draft, *, now: datetime) -> Skill | None:
    """Store a proposal for the operators; None where the same was decided before, or is in use.

    In a transaction that holds the trajectories.
    """
    scope = _scope(tenant, rows)
    name = _name(tenant, row.family)
    skill = Skill.objects.of(tenant).select_for_update().filter(family=row.family, **scope).first()
    if skill is None:
        # The name is another skill's, or one's of another scope.
        taken = set(Skill.objects.of(tenant).filter(name__startswith=name[:50]).values_list("name", flat=True))
        numbered = (f"{name[: LONGEST_NAME - 5]}-{number}" for number in itertools.count(2))
        free_name = next(one for one in itertools.chain([name], numbered) if one not in taken)
        skill = Skill.objects.create(
            tenant=tenant, name=free_name, family=row.family, created_at=now, changed_at=now, **scope
        )
    elif _is_known(skill, draft):
        return None
    version = SkillVersion.objects.create(
        tenant_id=tenant.pk,
        skill=skill,
        number=skill.next_number,
        actor_kind=NOBODY.kind,
        actor_id=NOBODY.id,
        extractor=row.extractor,
        prompt_version=prompt.VERSION if row.calls else "",
        created_at=now,
    )
    store_texts((NewText(line.section, line.text, line.rests_on) for line in draft.lines), version)
    skill.waits_since, skill.changed_at, skill.version = skill.waits_since or now, now, skill.version + 1
    if skill.status == Skill.Status.REJECTED:
        skill.status = Skill.Status.WITHDRAWN if skill.served else Skill.Status.PROPOSED
    skill.save()
    audit.record(actor=NOBODY, verb="propose", target=skill, now=now, counts={"texts": len(draft.lines)})
    told_of = WebhookEvent(Event.SKILL_PROPOSED, {"skill_id": skill.pk, "version": version.number})
    outbox.publish(tenant.pk, [told_of], now=now, tenant=tenant)
    return skill


def _is_known(skill: Skill, draft: Draft) -> bool:
    """Whether a version of the skill says just this: in use, waiting, rejected or withdrawn."""
    wanted = sorted((line.section, line.text) for line in draft.lines)
    texts = serving.texts_of(skill.versions.all())
    return any(sorted((str(one.section), one.text) for one in found) == wanted for found in texts.values())


def _scope(tenant: Tenant, rows: Sequence[Trajectory]) -> dict[str, object]:
    """To whom it is served: the narrowest circle in which all of these trajectories are.

    The agent whose they all are; a group of which all of the people are members; else every agent of the tenant.
    """
    agents = {one.agent_id for one in rows}
    if len(agents) == 1 and agents != {""}:
        return {"scope": Skill.Scope.AGENT, "agent_id": agents.pop(), "group": None}
    people = {one.end_user_id for one in rows}
    members = GroupMember.objects.filter(tenant=tenant, end_user__in=people, group__trashed_at=None)
    shared = members.order_by().values("group").annotate(of_them=Count("end_user", distinct=True))
    group = shared.filter(of_them=len(people)).order_by("group").values_list("group", flat=True).first()
    if group:
        return {"scope": Skill.Scope.GROUP, "agent_id": "", "group_id": group}
    return {"scope": Skill.Scope.TENANT, "agent_id": "", "group": None}


def _private(tenant: Tenant, rows: Sequence[Trajectory]) -> set[uuid.UUID]:
    """Of these trajectories those whose session is its agent's own memory: no other agent is told of it."""
    if tenant.memory_of == MemoryOf.AGENT:
        return {one.pk for one in rows if one.agent_id}
    sessions = Session.objects.filter(tenant=tenant, external_id__in=[one.session_id for one in rows if one.session_id])
    own = set(sessions.filter(memory_of=MemoryOf.AGENT).values_list("end_user", "external_id"))
    return {one.pk for one in rows if one.agent_id and (one.end_user_id, one.session_id) in own}


def _name(tenant: Tenant, family: str) -> str:
    """The name of the folder: of the label of the kind of task, unless that names somebody."""
    name = rendering.slug(family)
    is_personal = not name or checking.alone(family) or checking.naming(tenant, [family, name.replace("-", " ")])
    return "procedure" if is_personal else name


def _step(step: TrajectoryStep) -> StepInput:
    said = [step.tool, str(step.arguments) if step.arguments else "", step.content]
    return StepInput(step.kind, " ".join(filter(None, said)), step.is_error or bool(step.exit_code))


def _end(row: SkillPass, *, state: SkillPass.State, failure: str = "") -> None:
    """End a locked pass, whose lease ends with it."""
    row.state, row.failure = state, failure
    row.lease_token, row.lease_until, row.attempts = None, None, 0
    row.finished_at = row.clock
    row.save()
