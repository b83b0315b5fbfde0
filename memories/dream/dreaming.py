"""Dreams and reflections as work: when one begins, who works on it, and how it ends.

The row of a dream is the queue, under a lease. Episodes and files are gathered and the model is asked with no
transaction open; then one short transaction, which holds the person, applies the edits, keeps each of them, and notes
which episodes were read. Killed anywhere, a dream is applied whole or not at all; the database refuses to note an
episode twice. A reflection is carried out alike: its last transaction stores what it proposes.
"""

import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext as _
from django_q.tasks import async_task

from memories import audit, conf
from memories.audit import Actor
from memories.curation.files import FileWriter
from memories.curation.statements.write_trust import WriteTrust
from memories.db import tenancy
from memories.dream import applying, proposals, reflecting, unread
from memories.dream.errors import DreamOpen, NoModelToDream, NothingToDream, NothingToReflect, Outdated
from memories.dream.summaries import summary_of
from memories.exceptions import ModelError, NotFound, PersonRestricted
from memories.forgetting.upkeep_rows import lock_person
from memories.llm import client
from memories.llm.calls import Completion
from memories.llm.prices import cost_of
from memories.llm.prompts import dream_edits, reflections
from memories.llm.prompts.dream_edits import DreamEdits
from memories.llm.prompts.reflections import Reflections
from memories.models import (
    ActorKind,
    Dream,
    DreamedEpisode,
    DreamEdit,
    EndUser,
    Episode,
    EpisodeStatus,
    ModelUse,
    Tenant,
    Trust,
)
from memories.models.memories.dreams import PERSON_CHANGED
from memories.queue import circuit_breaker, leases, own_models, spending
from memories.queue.background_calls import count, may_ask, note_failure, thinking_config_of
from memories.queue.leases import Lease
from memories.queue.spending import Spent
from memories.telemetry import traces

TASK = "memories.tasks.dream"
Kind, State, EditState = Dream.Kind, Dream.State, DreamEdit.State
# Why a dream failed beside the codes of a model's errors.
EPISODES_CHANGED = "episodes_changed"
NOBODY = Actor(kind=ActorKind.DREAM)


@dataclass(kw_only=True)
class DreamLease(Lease[Dream]):
    """A dream that is ours, with what it is to ask."""

    rules: conf.Rules
    config: conf.LLMConfig


def begin(
    *,
    person: EndUser,
    agent_id: str,
    trigger: Dream.Trigger,
    now: datetime,
    actor: Actor = NOBODY,
    kind: Dream.Kind = Kind.FILES,
) -> Dream:
    """Insert a dream, or a reflection, for workers to claim.

    Errors: NothingToDream (NothingToReflect), DreamOpen, NoModelToDream, PersonRestricted.
    """
    if person.restricted_at:
        raise PersonRestricted
    if not client.is_configured(thinking_config_of(person.tenant)):
        raise NoModelToDream
    if not _next_episodes(kind, trigger, person, agent_id, now=now):
        raise NothingToReflect if kind == Kind.REFLECTION else NothingToDream
    by = {} if actor is NOBODY else {"actor_kind": actor.kind, "actor_id": actor.id}
    given = {"agent_id": agent_id, "kind": kind, "trigger": trigger, "started_at": now, **by}
    dream = Dream(tenant=person.tenant, end_user=person, **given)
    try:
        with transaction.atomic():
            dream.save(force_insert=True)
    except IntegrityError as error:
        raise DreamOpen from error
    return dream


def dream_by_hand(
    *, person: EndUser, agent_id: str, actor: Actor, now: datetime, kind: Dream.Kind = Kind.FILES
) -> Dream:
    """Begin a dream, or a reflection, about a person and agent now, whatever the interval, and wake a worker.

    Errors: those of begin().
    """
    with transaction.atomic():
        dream = begin(person=person, agent_id=agent_id, trigger=Dream.Trigger.HAND, now=now, actor=actor, kind=kind)
        record(dream, "dream", actor=actor, now=now)
        enqueue()
    return dream


def enqueue() -> None:
    """Send a worker the task that looks for dreams."""
    async_task(TASK)


def run_slice(*, now: datetime, seconds: float) -> bool:
    """Carry on dreams that nobody holds and begin due ones, for about so long; True when more can be done now.

    Errors: LeaseLost.
    """
    until = time.monotonic() + seconds
    for dream in _next(now=now):
        run(dream, now=now)
        if time.monotonic() > until:
            return True
    return False


def run(dream: Dream, *, now: datetime) -> None:
    """Carry out one dream in this process, if nobody else does and its endpoint takes calls. Errors: LeaseLost."""
    work = claim(dream)
    if work is None:
        return
    with tenancy.of_tenant(work.row.tenant_id):
        is_configured = client.is_configured(work.config)
        if is_configured and may_ask(work.row.tenant, work.config, lease=work.lasts, now=now):
            _dream(work, now=now)
        else:
            # Nothing was tried: it waits for the next look.
            leases.release(work, attempts=0)


def claim(dream: Dream) -> DreamLease | None:
    """Take the dream under a lease that outlasts a model call; None when it is over, or somebody else holds it.

    One that ended its workers too often is given up.
    """
    with transaction.atomic():
        row = leases.lock(Dream.objects.running().free().select_related("tenant", "end_user__tenant"), dream.pk)
        if row is None:
            return None
        rules = conf.rules(row.tenant)
        lasts = timedelta(seconds=rules.lease_seconds)
        token = leases.take(row, give_up=partial(_end, failure=leases.WORKER_LOST), lasts=lasts)
        if token is None:
            return None
        return DreamLease(row=row, token=token, lasts=lasts, rules=rules, config=thinking_config_of(row.tenant))


def _next(*, now: datetime) -> Iterator[Dream]:
    """Dreams to work on: those that began, then due ones of each tenant, which begin here."""
    yield from Dream.objects.running().free().order_by("started_at", "pk")
    wanted = Q(numbers__dreams=True) | Q(numbers__reflections=True)
    for tenant in Tenant.objects.filter(wanted, offboarded_at=None).order_by("pk"):
        due = _due(tenant, now=now) if client.is_configured(thinking_config_of(tenant)) else ()
        for kind, person, agent_id in due:
            if not _has_calls(tenant, now=now):
                break
            try:
                yield begin(person=person, agent_id=agent_id, trigger=Dream.Trigger.SCHEDULE, now=now, kind=kind)
            except (NothingToDream, DreamOpen, PersonRestricted):
                # Somebody else was quicker, or what may be proposed in a week is used up.
                continue


def _due(tenant: Tenant, *, now: datetime) -> Iterator[tuple[Dream.Kind, EndUser, str]]:
    """Whose turn it is, for what: first dreams, then reflections."""
    rules = conf.rules(tenant)
    kinds = ((Kind.FILES, rules.dreams, unread.due), (Kind.REFLECTION, rules.reflections, reflecting.due))
    for kind, is_on, due in kinds:
        passed: list[uuid.UUID] = []
        while is_on and (people := due(tenant=tenant, rules=rules, now=now, passed=passed)):
            for person, agent_id in people:
                # Once a look, whatever comes of it.
                passed.append(person.pk)
                yield kind, person, agent_id


def _has_calls(tenant: Tenant, *, now: datetime) -> bool:
    """Whether neither a pause of the endpoint nor a daily cap lets dreams wait: so none begins that would."""
    own = own_models.own_of(tenant.pk)
    if own and spending.day_of(tenant, own, now=now).is_capped:
        return False
    return circuit_breaker.free_calls(thinking_config_of(tenant).tenant_id) != 0


def _next_episodes(kind: str, trigger: str, person: EndUser, agent_id: str, *, now: datetime) -> list[Episode]:
    """What there is to read, if it is enough."""
    if kind != Kind.REFLECTION:
        return unread.next_episodes(person, agent_id, now=now)
    least = reflecting.LEAST_BY_HAND if trigger == Dream.Trigger.HAND else reflecting.LEAST_NEW
    return reflecting.next_episodes(person, agent_id, now=now, least_new=least)


def _dream(work: DreamLease, *, now: datetime) -> None:
    dream, owner = work.row, work.config.tenant_id
    episodes = _next_episodes(dream.kind, dream.trigger, dream.end_user, dream.agent_id, now=now)
    if not episodes:
        # They went meanwhile: no call.
        circuit_breaker.release_probe(owner)
        _release(work, State.UNCHANGED)
        return
    attributes = {"kind": dream.kind, "dream": str(dream.pk), "tenant": dream.tenant.slug}
    with traces.span("dream", episodes=len(episodes), **attributes):
        try:
            completion = _ask(work, episodes, now=now)
        except ModelError as error:
            count(dream.tenant, work.config, error, now=now)
            note_failure(error, work.config, about=dream.end_user_id)
            _release(work, State.FAILED, failure=error.code)
        except PersonRestricted:
            circuit_breaker.release_probe(owner)
            _release(work, State.FAILED, failure=PERSON_CHANGED)
        else:
            count(dream.tenant, work.config, completion, now=now)
            circuit_breaker.close(owner)
            _commit(work, episodes, completion, now=now)


def _ask(
    work: DreamLease, episodes: Sequence[Episode], *, now: datetime
) -> Completion[DreamEdits] | Completion[Reflections]:
    """The model's answer. Errors: ModelError, PersonRestricted, LeaseLost."""
    dream = work.row
    about = (dream.end_user, dream.agent_id, episodes)
    # One call may have probed the endpoint.
    most, renew = max(1, work.rules.max_model_calls - 1), partial(_renew, work)
    if dream.kind == Kind.REFLECTION:
        prompt, expected = reflecting.messages(*about, now=now), reflections.ANSWER
        return client.complete(messages=prompt, answer=expected, max_calls=most, before_call=renew, config=work.config)
    return client.complete(
        messages=unread.messages(*about, now=now),
        answer=dream_edits.ANSWER,
        max_calls=most,
        before_call=renew,
        config=work.config,
    )


def _renew(work: DreamLease) -> None:
    """Before each HTTP call. Errors: LeaseLost; PersonRestricted, also when they were erased or merged."""
    leases.renew(work)
    person = work.row.end_user
    if not EndUser.objects.filter(pk=person.pk, generation=person.generation, restricted_at=None).exists():
        raise PersonRestricted


def _commit(
    work: DreamLease,
    episodes: Sequence[Episode],
    completion: Completion[DreamEdits] | Completion[Reflections],
    *,
    now: datetime,
) -> None:
    """What came of it, what was read and the end of the dream together. Errors: LeaseLost."""
    answer = completion.answer
    try:
        with traces.span("commit"), transaction.atomic():
            # The person before the dream, as every verb on dreams.
            if not lock_person(work.row.end_user):
                raise PersonRestricted
            dream = leases.fence(work)
            dream.episodes = len(episodes)
            dream.extractor, dream.prompt_version = completion.extractor, dream_edits.VERSION
            dream.calls = completion.calls
            dream.prompt_tokens, dream.completion_tokens = completion.prompt_tokens, completion.completion_tokens
            dream.cost = cost_of(dream.prompt_tokens, dream.completion_tokens, work.config.prices)
            if isinstance(answer, Reflections):
                counts = _propose(dream, answer, episodes, rules=work.rules, now=now)
            else:
                counts = _edit_files(dream, answer, episodes, rules=work.rules, now=now)
            _end(dream, state=State(dream.state))
            verb = "reflect" if dream.kind == Kind.REFLECTION else "dream"
            record(dream, verb, actor=actor_of(dream), now=now, counts=counts)
            spending.note(
                dream.tenant,
                ModelUse.Purpose.DREAMS,
                calls=completion.calls,
                spent=Spent(completion.prompt_tokens, completion.completion_tokens),
                prices=work.config.prices,
                now=now,
            )
    except (PersonRestricted, NotFound):
        _release(work, State.FAILED, failure=PERSON_CHANGED)
    except Outdated:
        _release(work, State.FAILED, failure=EPISODES_CHANGED)


def _edit_files(
    dream: Dream, answer: DreamEdits, episodes: Sequence[Episode], *, rules: conf.Rules, now: datetime
) -> dict[str, int]:
    """Carry out the edits of an answer, and note what was read; how many edits came to what. Errors: Outdated."""
    # As it is by now: whoever wrote a file meanwhile may have begun it in another place.
    files = unread.editable_files(dream.end_user, dream.agent_id, now=now)
    edits = [_edit(dream, proposal) for proposal in proposals.read(answer.edits, files)]
    act = applying.judge if rules.dreams_wait else applying.apply
    act(dream, [edit for edit in edits if not edit.code], writer=writer_of(dream, now=now))
    states = {edit.state for edit in edits}
    dream.state = State.UNCHANGED
    if EditState.WAITING in states:
        dream.state = State.WAITING
    elif EditState.APPLIED in states:
        dream.state = State.APPLIED
    _note_read(dream, episodes)
    dream.summary = summary_of(edits)
    DreamEdit.objects.bulk_create(edits)
    return counts_of(edits)


def _propose(
    dream: Dream, answer: Reflections, episodes: Sequence[Episode], *, rules: conf.Rules, now: datetime
) -> dict[str, int]:
    """Store what a reflection proposes; how much, and how many items were refused. Errors: Outdated."""
    dream.prompt_version = reflections.VERSION
    _hold_episodes(dream, episodes)
    extractor = dream.extractor
    counts = reflecting.propose(
        dream, answer.patterns, episodes, actor=actor_of(dream), extractor=extractor, rules=rules, now=now
    )
    dream.proposed = counts["proposed"]
    dream.state = State.APPLIED if dream.proposed else State.UNCHANGED
    return counts


def _edit(dream: Dream, one: proposals.EditProposal) -> DreamEdit:
    state = EditState.REFUSED if one.code else EditState.WAITING
    return DreamEdit(
        tenant_id=dream.tenant_id,
        dream=dream,
        number=one.number,
        path=one.path,
        old_text=one.old,
        new_text=one.new,
        code=one.code,
        state=state,
    )


def _note_read(dream: Dream, episodes: Sequence[Episode]) -> None:
    """The cursor moves. Errors: Outdated, when one of them was changed, forgotten or read meanwhile."""
    _hold_episodes(dream, episodes)
    read = [DreamedEpisode(tenant_id=dream.tenant_id, dream=dream, episode=one) for one in episodes]
    try:
        with transaction.atomic():
            DreamedEpisode.objects.bulk_create(read)
    except IntegrityError as error:
        raise Outdated from error


def _hold_episodes(dream: Dream, episodes: Sequence[Episode]) -> None:
    """Lock what was read, so that it is there until the commit. Errors: Outdated, when it was changed or forgotten."""
    rows = Episode.objects.filter(end_user=dream.end_user_id, status=EpisodeStatus.ACTIVE)
    rows = rows.filter(pk__in=[episode.pk for episode in episodes]).select_for_update(no_key=True, of=("self",))
    if {(row.pk, row.version) for row in rows.order_by("pk")} != {(one.pk, one.version) for one in episodes}:
        raise Outdated


def _release(work: DreamLease, state: Dream.State, *, failure: str = "") -> None:
    """End a dream that wrote nothing. Errors: LeaseLost."""
    leases.release(work, state=state, failure=failure, finished_at=Now(), attempts=0)


def _end(dream: Dream, *, state: Dream.State = State.FAILED, failure: str = "") -> None:
    """End a locked dream, whose lease ends with it."""
    dream.state, dream.failure = state, failure
    dream.lease_token, dream.lease_until, dream.attempts = None, None, 0
    dream.finished_at = dream.clock
    dream.save()


def actor_of(dream: Dream) -> Actor:
    return Actor(kind=ActorKind.DREAM, id=str(dream.pk))


def writer_of(dream: Dream, *, now: datetime) -> FileWriter:
    """Who writes the edits: the dream, whose words are a machine's."""
    reason = _("From what happened since the last dream.")
    return FileWriter(actor_of(dream), now, WriteTrust(Trust.ASSISTANT), reason=reason)


def counts_of(edits: Sequence[DreamEdit]) -> dict[str, int]:
    """How many edits came to what, for the audit trail."""
    states = [str(edit.state) for edit in edits]
    return {name: states.count(name) for name in EditState.values if name in states}


def record(dream: Dream, verb: str, *, actor: Actor, now: datetime, counts: dict[str, int] | None = None) -> None:
    """Audit what became of a dream."""
    audit.record(actor=actor, verb=verb, target=dream, now=now, counts=counts)
