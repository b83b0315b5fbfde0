"""A dry run of extraction: the exact prompt of a batch, and what would become of the answer, with nothing stored.

The batch is one of a session, or of a pasted text. The ordinary code reads and writes rows, so they are written in
transactions that are rolled back. Between two of them the model is asked, with none open. What stays are the tokens,
which count for the tenant's daily caps, and one event of the audit trail, without any text.
"""

import threading
import uuid
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Model
from django.utils.translation import gettext as _

from memories import audit, conf, content_policy
from memories.audit import Actor
from memories.capture.ingest import PostedMessage, store_turns
from memories.exceptions import Conflict, HubBusy, ModelError, PersonRestricted, PreviewRefused
from memories.extraction import gathering, rules_mode, screening
from memories.extraction.consolidation import read_by_rules
from memories.llm import client
from memories.llm.prices import cost_of
from memories.llm.prompts import memory_update
from memories.llm.prompts.framing import Message
from memories.llm.prompts.memory_update import MemoryUpdate
from memories.models import (
    EndUser,
    ExtractionRun,
    FactRevision,
    ProfileRevision,
    ReviewItem,
    Session,
    SessionQueue,
    Tenant,
    Turn,
)
from memories.queue import own_models, session_queue, spending
from memories.queue.session_queue import Claim
from memories.queue.spending import Spent
from memories.reconcile import gate, judgement, neighbours, profile, reconcile
from memories.reconcile.batches import TurnBatch
from memories.reconcile.gate import Admitted, Refused

# Threads of the web server wait for the model: so many at a time in each process, and so many seconds for a call.
AT_ONCE, SECONDS = 2, 60
MOST_MESSAGES, LONGEST_MODEL, LONGEST_GUIDANCE = 100, 100, 4_000
# The turns in which signals are looked for.
_SIGNALS_IN = 200
_running = threading.BoundedSemaphore(AT_ONCE)


@dataclass(frozen=True)
class Source:
    """What is extracted: turns of a session beyond the number `after` (None: those that wait, or else all), or messages
    of a person, who need not exist, to an agent."""

    tenant: Tenant
    session: Session | None = None
    after: int | None = None
    messages: Sequence[PostedMessage] = ()
    user_id: str = ""
    agent_id: str = ""


@dataclass(frozen=True)
class Trial:
    """With what: another model at the endpoint of the tenant's calls ("": theirs), another guidance (None: theirs)."""

    model: str = ""
    guidance: str | None = None


@dataclass(frozen=True)
class FactChange:
    """What would become of a fact: `verb` is extract (it is new), reinforce, refine, supersede, remove, …; `status` and
    `content` after it; `reasons` are those for which it would wait for review."""

    verb: str
    content: str
    before: str
    category: str
    status: str
    trust: str
    confidence: float
    reasons: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class RefusedItem:
    """An item that the gate does not keep, and the code of the reason; `content` as the model wrote it."""

    content: str
    reason: str


@dataclass(frozen=True)
class SectionChange:
    """A section of the profile that would be written, or proposed for review."""

    section: str
    text: str
    is_proposed: bool


@dataclass(frozen=True)
class Answered:
    """What a model, or the rules, made of the prompt. `failure`: code of the failed call, with nothing else then."""

    facts: list[FactChange] = field(default_factory=list)
    refused: list[RefusedItem] = field(default_factory=list)
    sections: list[SectionChange] = field(default_factory=list)
    outcome: dict[str, int] = field(default_factory=dict)
    refusals: dict[str, int] = field(default_factory=dict)
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: Decimal | None = None
    failure: str = ""
    failure_detail: str = ""


@dataclass(frozen=True)
class Preview:
    """The batch and its prompt; `answered` is None unless the model was to be asked.

    `messages` is empty where the range has nothing that extraction reads.
    """

    first_number: int
    last_number: int
    fed_turns: int
    messages: list[Message]
    prompt_version: str
    extractor: str
    answered: Answered | None = None

    @property
    def is_by_rules(self) -> bool:
        return self.extractor == rules_mode.EXTRACTOR


def show(*, source: Source, trial: Trial, now: datetime) -> Preview:
    """The prompt that the model would get. Errors: PersonRestricted, Erased, PreviewRefused."""
    return _described(_prepared(source, trial, now))


def run(*, source: Source, trial: Trial, actor: Actor, now: datetime) -> Preview:
    """The prompt, and what would become of the answer to it.

    A failing model is a part of the result. Errors: PersonRestricted, Erased; Conflict where the person of a pasted
    text is new, and came meanwhile; PreviewRefused where extraction is off or the tenant's daily cap is reached;
    HubBusy while others run.
    """
    tenant = source.tenant
    if spending.day_of(tenant, own_models.own_of(tenant.pk), now=now).is_capped:
        raise PreviewRefused(_("The tenant's daily cap is reached. Raise it, or wait until the day ends."))
    prepared = _prepared(source, trial, now)
    if prepared.config.mode == conf.LLM_OFF:
        raise PreviewRefused(_("Extraction is off: MEMORYHUB_LLM=off. The prompt can still be shown."))
    described = _described(prepared)
    if not described.messages:
        return described
    if not _running.acquire(blocking=False):
        raise HubBusy(seconds=10)
    try:
        answered = _answered(prepared, now)
    finally:
        _running.release()
    person = None if prepared.is_pasted else prepared.claim.session.end_user
    counts = {"calls": answered.calls, "tokens": answered.prompt_tokens + answered.completion_tokens}
    audit.record(
        actor=actor,
        verb="try_extraction",
        target=person or tenant,
        object_id=(person or tenant).pk,
        tenant=tenant,
        now=now,
        counts={name: count for name, count in counts.items() if count},
    )
    return replace(described, answered=answered)


@dataclass(frozen=True)
class _Prepared:
    """A batch as a worker would hold it. `rows` of a pasted text are in the database only while they are used."""

    claim: Claim
    batch: TurnBatch
    rows: Sequence[Model] = ()

    @property
    def config(self) -> conf.LLMConfig:
        return self.claim.config

    @property
    def is_pasted(self) -> bool:
        return bool(self.rows)

    @property
    def has_policy(self) -> bool:
        return content_policy.in_force(self.claim.session.tenant) is not None

    @property
    def prompt_version(self) -> str:
        version = memory_update.version(
            with_triples=self.claim.rules.triples, with_policy=self.has_policy, with_fields=bool(self.batch.fields)
        )
        return rules_mode.EXTRACTOR if self.config.mode == conf.LLM_RULES else version

    @property
    def extractor(self) -> str:
        return rules_mode.EXTRACTOR if self.config.mode == conf.LLM_RULES else f"llm:{self.config.model}"


class _Undone(Exception):
    """Ends a transaction that must leave nothing."""


@contextmanager
def _nothing_stays() -> Iterator[None]:
    """A transaction that is rolled back, whatever happens in it."""
    try:
        with transaction.atomic():
            yield
            raise _Undone
    except _Undone:
        pass


def _prepared(source: Source, trial: Trial, now: datetime) -> _Prepared:
    config = own_models.config_of(source.tenant.pk)
    if trial.model:
        config = replace(config, model=trial.model)
    config = replace(config, timeout=min(config.timeout, SECONDS))
    if source.session is not None:
        return _of_session(source.session, source.after, config, trial.guidance, now)
    with _nothing_stays():
        nobody = f"preview-{uuid.uuid4()}"
        receipt = store_turns(
            tenant=source.tenant,
            user_id=source.user_id or nobody,
            session_id=nobody,
            agent_id=source.agent_id,
            messages=source.messages,
        )
        if receipt.session is None:
            raise PreviewRefused(_("Capture is off for this tenant or person, so nothing would be extracted."))
        found = _of_session(_with_person(receipt.session.pk), 0, config, trial.guidance, now)
        person = EndUser.objects.get(pk=receipt.session.end_user_id)
        session = Session.objects.get(pk=receipt.session.pk)
        turns = Turn.objects.filter(session=session)
        rows: list[Model] = [session, SessionQueue.objects.get(pk=session.pk), *turns]
    # Who is there without it stays as they are.
    if not EndUser.objects.filter(pk=person.pk).exists():
        rows.insert(0, person)
    return replace(found, rows=rows)


def _of_session(
    session: Session, after: int | None, config: conf.LLMConfig, guidance: str | None, now: datetime
) -> _Prepared:
    if session.end_user.restricted_at:
        raise PersonRestricted
    tenant, queue = session.tenant, SessionQueue.objects.get(pk=session.pk)
    waits = queue.extracted_number < session.turn_count
    start = (queue.extracted_number if waits else 0) if after is None else after
    turns = Turn.objects.filter(session=session).readable().after(start).order_by("number")[:_SIGNALS_IN]
    row = SessionQueue(
        session=session, extracted_number=start, signals=session_queue.signals_of(list(turns), tenant), tenant=tenant
    )
    claim = Claim(
        row=row,
        token=uuid.uuid4(),
        session=session,
        generation=session.end_user.generation,
        rules=conf.rules(tenant),
        config=config,
    )
    return _Prepared(claim, gathering.gather(claim=claim, now=now, guidance=guidance))


def _with_person(session_id: uuid.UUID) -> Session:
    return Session.objects.select_related("tenant", "end_user__tenant").get(pk=session_id)


def _described(prepared: _Prepared) -> Preview:
    batch = prepared.batch
    return Preview(
        first_number=batch.first_number,
        last_number=batch.last_number,
        fed_turns=len(batch.turns),
        messages=batch.messages,
        prompt_version=prepared.prompt_version,
        extractor=prepared.extractor,
    )


def _answered(prepared: _Prepared, now: datetime) -> Answered:
    spent, calls = _Meter(prepared, now), prepared.claim.rules.max_model_calls
    held, refused = dict[int, str](), Counter[str]()
    try:
        if prepared.config.mode == conf.LLM_RULES:
            answer, held, refused = read_by_rules(prepared.batch)
        else:
            answer = _ask(prepared, spent, calls)
    except ModelError as error:
        spent.add(error.prompt_tokens, error.completion_tokens)
        return Answered(failure=error.code, failure_detail=error.detail, **spent.figures())
    batch, claim = prepared.batch, prepared.claim
    screened = screening.screen(answer, claim.session.tenant)
    answer = screened.answer
    admitted = gate.admit(
        answer.new_facts,
        evidence=batch.evidence,
        rules=claim.rules,
        held=held,
        forbidden=screened.forbidden,
        fields=batch.fields,
    )
    profile.prepare(batch.evidence, answer.profile)
    near = judgement.judge(
        proposals=neighbours.propose(
            person=claim.session.end_user,
            candidates=admitted.candidates,
            now=now,
            before_call=lambda: None,
            agent_id=claim.session.owner(claim.session.tenant),
        ),
        max_calls=calls - spent.calls,
        max_tokens=claim.rules.batch_tokens,
        before_call=spent.before_call,
        config=prepared.config,
    )
    spent.add(near.prompt_tokens, near.completion_tokens)
    applied = _applied(prepared, answer, admitted, near.near, now)
    refusals = Counter(applied.refusals) + refused
    refused_items = _refused(prepared, answer, screened.forbidden)
    return replace(applied, refused=refused_items, refusals=dict(refusals), **spent.figures())


def _ask(prepared: _Prepared, spent: "_Meter", calls: int) -> MemoryUpdate:
    completion = client.complete(
        messages=prepared.batch.messages,
        answer=memory_update.answer_form(with_triples=prepared.claim.rules.triples, with_policy=prepared.has_policy),
        max_calls=calls,
        before_call=spent.before_call,
        config=prepared.config,
    )
    spent.add(completion.prompt_tokens, completion.completion_tokens)
    return completion.answer


class _Meter(Spent):
    """Counts calls and tokens, each answer at once for the tenant's daily caps."""

    def __init__(self, prepared: _Prepared, now: datetime) -> None:
        super().__init__()
        self.calls, self._of, self._now = 0, prepared, now

    def before_call(self) -> None:
        self.calls += 1

    def add(self, prompt_tokens: int, completion_tokens: int) -> None:
        super().add(prompt_tokens, completion_tokens)
        spending.count(
            self._of.claim.session.tenant,
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            prices=self._of.config.prices,
            now=self._now,
        )

    def figures(self) -> dict[str, Any]:
        """The fields of Answered that these are."""
        tokens = (self.prompt_tokens, self.completion_tokens)
        cost = cost_of(*tokens, self._of.config.prices) if self.calls else None
        return {"calls": self.calls, "prompt_tokens": tokens[0], "completion_tokens": tokens[1], "cost": cost}


def _applied(
    prepared: _Prepared, answer: MemoryUpdate, admitted: Admitted, near: judgement.Verdicts, now: datetime
) -> Answered:
    """What the ordinary reconciliation makes of it, read before it is rolled back."""
    claim, batch = prepared.claim, prepared.batch
    with _nothing_stays():
        try:
            for row in prepared.rows:
                row.save(force_insert=True)
        except IntegrityError as error:
            # While the model thought, somebody came with this id.
            raise Conflict(_("Somebody else has done this meanwhile.")) from error
        run = ExtractionRun.objects.create(
            tenant=claim.session.tenant,
            end_user=claim.session.end_user,
            session=claim.session,
            first_number=batch.first_number,
            last_number=batch.last_number,
            fed_turns=len(batch.turns),
            attempt=1,
            extractor=prepared.extractor,
            prompt_version=prepared.prompt_version,
            guidance_version=claim.session.tenant.guidance_version,
            started_at=now,
        )
        outcome = reconcile.apply(run=run, batch=batch, answer=answer, admitted=admitted, near=near, now=now)
        revisions = ProfileRevision.objects.filter(extraction=run).order_by("pk")
        return Answered(
            facts=_facts(run),
            sections=[SectionChange(row.section, row.after, row.version is None) for row in revisions],
            outcome=dict(outcome.done),
            refusals=dict(outcome.refusals),
        )


def _facts(run: ExtractionRun) -> list[FactChange]:
    """Each fact once, after all that the run did to it; in the order of the first thing."""
    reasons: dict[uuid.UUID, list[str]] = {}
    for item in ReviewItem.objects.filter(extraction=run, fact__isnull=False).order_by("pk"):
        reasons.setdefault(item.fact_id, []).append(item.reason)  # type: ignore[arg-type]
    changes: dict[uuid.UUID, FactChange] = {}
    written = FactRevision.objects.filter(actor_id=str(run.pk)).select_related("fact").order_by("pk")
    for revision in written:
        fact, first = revision.fact, changes.get(revision.fact_id)
        changes[fact.pk] = FactChange(
            verb=first.verb if first else revision.verb,
            content=fact.content,
            before=first.before if first else str(revision.before.get("content") or ""),
            category=fact.category,
            status=fact.status,
            trust=fact.trust,
            confidence=fact.confidence,
            reasons=reasons.get(fact.pk, []),
        )
    return list(changes.values())


def _refused(prepared: _Prepared, answer: MemoryUpdate, forbidden: Collection[int]) -> list[RefusedItem]:
    """The items that the gate refused one by one, as far as they have words."""
    evidence, rules = prepared.batch.evidence, prepared.claim.rules
    refused = []
    for index, raw in enumerate(answer.new_facts[: gate.MOST_CANDIDATES]):
        if index in forbidden:
            judged: Any = Refused(gate.CONTENT_POLICY)
        else:
            judged = gate.judge(raw, index=index, evidence=evidence, rules=rules)
        if isinstance(judged, Refused):
            content = raw.get("content") if isinstance(raw, dict) else raw
            words = content[: gate.LONGEST_CONTENT] if isinstance(content, str) else ""
            refused.append(RefusedItem(words, judged.reason))
    return refused
