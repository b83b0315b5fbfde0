"""A question about a person, answered from what is remembered, each sentence with the memories that say it.

The question is searched for, and what the model plans to look for besides. The memories are numbered, the model answers
in sentences that cite them, and a sentence that its memories do not say is cut (supported.py). Without evidence the
answer is `unknown`, and the model is not asked; without a model it is the evidence. Nothing of it is stored but tokens.

All of it is one generator of what can be told so far. Its last event is the answer: whoever wants that alone takes it.
"""

import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, tzinfo
from decimal import Decimal
from enum import StrEnum
from time import monotonic
from typing import Any

from memories import budgets, conf
from memories.answering.allowance import Allowance
from memories.answering.supported import ASSISTANT, MEMORY, PERSON, Memory, supported
from memories.exceptions import (
    HubBusy,
    ModelAnswerInvalid,
    ModelAnswerTruncated,
    ModelError,
    ModelRefused,
    ModelTimeout,
    NoPrice,
)
from memories.invisible import strip_invisible
from memories.llm import client, tokens
from memories.llm.answers import A, AnswerFormat, GrowingItems
from memories.llm.calls import Completion, Written
from memories.llm.prompts import answer_plan, cited_answer
from memories.llm.prompts.answer_plan import PlannedSearch
from memories.llm.prompts.cited_answer import CitedAnswer, CitedSentence, NumberedMemory
from memories.llm.prompts.framing import Message
from memories.llm.tokenizers import CONSERVATIVE, of_model
from memories.models import ModelUse, Role, Tenant
from memories.queue import own_models, spending
from memories.queue.spending import Spent
from memories.retrieval import search
from memories.retrieval.evidence import Level, strongest
from memories.retrieval.search import (
    EPISODE,
    FACT,
    GROUP_FACT,
    TURN,
    Finding,
    SearchFilters,
    SearchRequest,
    SearchResult,
)
from memories.text import uploads

# Threads of the web server wait for the model: so many at a time in each process, and so many seconds for all calls of
# an answer; a call that is refused so late is not made in another form. A request's own budget is longer (budgets.py).
AT_ONCE, SECONDS, LATE = 2, 40, 5
KINDS = (FACT, EPISODE, TURN)
# Of each search, and of all together.
FOUND, MOST_EVIDENCE = 20, 40
# Of a turn's beginning and end, as of all texts of prompts.
LONGEST_MEMORY = 2_000
# A sentence cites no more, and an answer has at least so much room.
MOST_CITED, LEAST_ROOM = 8, 64
# No plan, and no answer, has more tokens.
MOST_PLANNED, MOST_WRITTEN = 600, 2_000
# Where sentences stand without spaces between them.
_ENDS_EAST = ("。", "！", "？")
_running = threading.BoundedSemaphore(AT_ONCE)


class AnswerStatus(StrEnum):
    """What came of a question."""

    ANSWERED = "answered"
    # Nothing that is remembered surely has to do with it, or nothing that was written is said by what is.
    UNKNOWN = "unknown"
    # No model may be asked, or it failed: the memories alone.
    EVIDENCE = "evidence"


@dataclass(frozen=True)
class AnswerRequest:
    """A question about one person. `searches`: the most, the question's own among them (1: no plan is made).
    `max_tokens`: what all calls may read and write; `max_cost`: in US dollars. `as_of`: what was true then."""

    user_id: str
    question: str
    agent_id: str = ""
    roles: tuple[str, ...] = ()
    as_of: datetime | None = None
    searches: int = 3
    max_tokens: int = 8_000
    max_cost: Decimal | None = None


@dataclass(frozen=True)
class Searched:
    """A search that was planned beside the question's own, and how much it found."""

    query: str
    kinds: Sequence[str]
    since: datetime | None
    until: datetime | None
    as_of: datetime | None
    found: int


@dataclass(frozen=True)
class Sentence:
    """A sentence of the answer, and the numbers of the memories that say it."""

    text: str
    memories: Sequence[int]


@dataclass(frozen=True)
class Answer:
    """`evidence` are the memories by number, from 1, the strongest first; `cut` how many sentences they did not say;
    `failure` the code of a failed call, or why the model was not asked. A stream whose sentences were told before the
    call failed has both."""

    status: AnswerStatus
    sentences: Sequence[Sentence] = ()
    evidence: Sequence[Finding] = ()
    searches: Sequence[Searched] = ()
    cut: int = 0
    failure: str = ""
    model: str = ""
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: Decimal | None = None
    restricted: bool = False
    serve: bool = True
    zone: tzinfo = UTC

    @property
    def text(self) -> str:
        """The sentences, one after the other; a space is between them where their writing has any."""
        texts = [one.text for one in self.sentences]
        return "".join(
            text if not place or texts[place - 1].endswith(_ENDS_EAST) else f" {text}"
            for place, text in enumerate(texts)
        )

    @property
    def level(self) -> Level:
        return strongest([one.evidence_level for one in self.evidence])


@dataclass(frozen=True)
class Looked:
    """What was looked for beside the question itself, and how many memories all of it found."""

    searches: Sequence[Searched]
    found: int


@dataclass(frozen=True)
class Gathered:
    """The memories that the sentences to come may cite, the strongest first."""

    evidence: Sequence[Finding]

    @property
    def level(self) -> Level:
        return strongest([one.evidence_level for one in self.evidence])


@dataclass(frozen=True)
class Told:
    """A sentence that its memories say, and these: a moment ago they were still there, and said it."""

    text: str
    memories: Sequence[Finding]


# None: it goes on. The answer is the last one.
Event = Looked | Gathered | Told | Answer | None


def answer(*, tenant: Tenant, request: AnswerRequest, now: datetime) -> Answer:
    """The answer. A failing model is a part of it. Errors: NoPrice for a bound of the cost without prices; HubBusy
    while others ask; RequestTooCostly."""
    *_, found = told(tenant=tenant, request=request, now=now, streams=False)
    if not isinstance(found, Answer):
        raise TypeError("the last event is the answer")
    return found


def told(
    *,
    tenant: Tenant,
    request: AnswerRequest,
    now: datetime,
    streams: bool = True,
    has_left: Callable[[], bool] | None = None,
) -> Generator[Event, None, None]:
    """As answer(), event by event: None once the question was searched for, Looked, Gathered, Told, and the Answer.

    `streams`: sentences come while the model writes; else once it has written. `has_left` says that nobody waits any
    more. To close the generator ends the model's call, and counts what was written. Errors with the first event: those
    of answer().
    """
    config = own_models.config_of(tenant.pk)
    if request.max_cost is not None and client.is_configured(config) and config.prices is None:
        raise NoPrice
    why_not = _why_not(tenant, config, now)
    asking = _Asking(tenant, request, now, config, streams, has_left)
    if why_not:
        yield from asking.events(why_not)
        return
    if not _running.acquire(blocking=False):
        raise HubBusy(seconds=5)
    try:
        yield from asking.events()
    finally:
        _running.release()


def _why_not(tenant: Tenant, config: conf.LLMConfig, now: datetime) -> str:
    """Why no model is asked; "" if one is."""
    if not client.is_configured(config):
        return "no_model"
    return spending.CAPPED if spending.day_of(tenant, own_models.own_of(tenant.pk), now=now).is_capped else ""


@dataclass
class _Reading:
    """A model's answer while it is written."""

    so_far: Written | None = None
    told: list[CitedSentence] = field(default_factory=list)

    def complete_ones(
        self, stream: Generator[Written, None, Completion[CitedAnswer]]
    ) -> Generator[Sequence[CitedSentence], None, Completion[CitedAnswer]]:
        """Its sentences, as soon as each is complete."""
        items, before = GrowingItems("sentences"), CitedAnswer(sentences=[])
        while True:
            try:
                self.so_far = next(stream)
            except StopIteration as end:
                completion: Completion[CitedAnswer] = end.value
                return completion
            if complete := items.new_in(self.so_far.content):
                before.sentences.extend(complete)
                new = list(cited_answer.sentences_of(before))[len(self.told) :]
                self.told += new
                yield new


@dataclass
class _Asking:
    """One question on its way."""

    tenant: Tenant
    request: AnswerRequest
    now: datetime
    config: conf.LLMConfig
    streams: bool = False
    has_left: Callable[[], bool] | None = None
    allowance: Allowance = field(init=False)
    searches: list[Searched] = field(default_factory=list)
    found: dict[tuple[str, object], Finding] = field(default_factory=dict)
    planned: list[PlannedSearch] = field(default_factory=list)
    began: float = field(init=False)
    first: SearchResult = field(default_factory=SearchResult)

    def __post_init__(self) -> None:
        self.began = monotonic()
        self.allowance = Allowance(self.config, self.request.max_tokens, self.request.max_cost)

    def events(self, why_not: str = "") -> Iterator[Event]:
        """All of them; `why_not`: no model is asked for this reason."""
        self.first, _ = self._search(self._question)
        yield None
        is_served = self.first.serve and not self.first.restricted
        if is_served and not why_not:
            why_not = self._look_around()
        yield Looked(tuple(self.searches), len(self.found))
        yield Gathered(self._evidence())
        if why_not:
            yield self._bare(why_not)
        elif is_served and self._may_answer:
            yield from self._written()
        else:
            yield self._answer(AnswerStatus.UNKNOWN)

    def _look_around(self) -> str:
        """Search as it is planned. Returns why the model may not be asked for an answer."""
        try:
            plan = list(self._plan())
        except ModelError as error:
            self._count(error.prompt_tokens, error.completion_tokens)
            self._look_again()
            return error.code
        if self.allowance.calls:
            self._look_again()
        for planned in plan:
            self.planned.append(planned)
            self.searches.append(self._search(planned)[1])
        # The plan may have reached the cap.
        may_have = self.allowance.calls and self._may_answer
        return _why_not(self.tenant, self.config, self.now) if may_have else ""

    def _plan(self) -> Iterator[PlannedSearch]:
        """What to look for besides; nothing where one search is to do, or the allowance is too small for a plan."""
        more = self.request.searches - 1
        today, zone = self._today
        messages = answer_plan.build(question=self.request.question, today=today, time_zone=zone, most=more)
        room = self.allowance.room_for(messages, answer_plan.ANSWER)
        # The answer itself needs most of it.
        if more < 1 or room < self.request.max_tokens // 2:
            return
        try:
            plan = self._complete(messages, answer_plan.ANSWER, most=MOST_PLANNED)
        except (ModelAnswerInvalid, ModelAnswerTruncated, ModelRefused) as error:
            # It can do without, and models that think at length may need it to.
            self._count(error.prompt_tokens, error.completion_tokens)
            return
        yield from list(answer_plan.searches_of(plan))[:more]

    def _complete(self, messages: Sequence[Message], form: AnswerFormat[A], *, most: int) -> A:
        """What the model answers, counted. Errors: ModelError."""
        completion = client.complete(messages=messages, answer=form, **self._within_bounds(messages, form, most))
        self._count(completion.prompt_tokens, completion.completion_tokens)
        return completion.answer

    def _within_bounds(self, messages: Sequence[Message], form: AnswerFormat[A], most: int) -> dict[str, Any]:
        """What a call may take, of time and of tokens."""
        timeout = min(self.config.timeout, self._seconds_left)

        def in_time() -> None:
            if self._seconds_left < timeout - LATE or self._seconds_left <= 0:
                raise ModelTimeout

        return {
            "before_call": in_time,
            "config": replace(self.config, timeout=timeout),
            "most_tokens": self.allowance.ask(messages, form, most=most),
        }

    @property
    def _seconds_left(self) -> float:
        return SECONDS - (monotonic() - self.began)

    @property
    def _question(self) -> PlannedSearch:
        # Longer than a planned one may be.
        return PlannedSearch.model_construct(query=self.request.question)

    def _look_again(self) -> None:
        """Keep what a search still finds: the person may have been erased, or a memory changed, during a call."""
        before, self.found = self.found, {}
        # It adds nothing to the answer, and a stream looks before each sentence.
        with budgets.of_request():
            self.first, _ = self._search(self._question, again=True)
            for planned in self.planned:
                self._search(planned, again=True)
        self.found = {key: one for key, one in before.items() if key in self.found and self.found[key].text == one.text}

    def _search(self, planned: PlannedSearch, *, again: bool = False) -> tuple[SearchResult, Searched]:
        kinds = KINDS if planned.kind == "any" else (planned.kind,)
        since, until, as_of = (
            datetime.combine(day, time.min, tzinfo=self._zone) if day else None
            for day in (planned.since, planned.until, planned.as_of)
        )
        asked = SearchRequest(
            user_id=self.request.user_id,
            query=planned.query,
            kinds=kinds,
            # What was said meanwhile pushes nothing out.
            limit=2 * FOUND if again else FOUND,
            filters=SearchFilters(since=since, until=until, agent_id=self.request.agent_id or None),
            roles=self.request.roles,
            # What a plan looks at is never later than what the question may see.
            as_of=min((moment for moment in (as_of, self.request.as_of) if moment), default=None),
            min_evidence=Level.WEAK,
            for_agent=True,
        )
        result = search.search(tenant=self.tenant, search=asked, now=self.now, noted=not again)
        for finding in filter(_may_be_told, result.results):
            # As in a context: the text of a file is nobody's word.
            text = uploads.cut_blocks(finding.text) if finding.kind == TURN else finding.text
            if text.strip():
                self.found.setdefault(_key(finding), replace(finding, text=text))
        return result, Searched(asked.query, kinds, since, until, asked.as_of, len(result.results))

    @property
    def _zone(self) -> tzinfo:
        return self.first.zone

    @property
    def _today(self) -> tuple[date, str]:
        local = (self.request.as_of or self.now).astimezone(self._zone)
        return local.date(), str(self._zone)

    def _evidence(self) -> list[Finding]:
        """The strongest first, as they were found."""
        return sorted(self.found.values(), key=lambda one: -one.evidence_level.rank)[:MOST_EVIDENCE]

    @property
    def _may_answer(self) -> bool:
        """Whether the evidence is strong: one of ten questions about the world finds some that is weak by chance."""
        return strongest([one.evidence_level for one in self.found.values()]) == Level.STRONG

    def _written(self) -> Iterator[Event]:
        """The model's sentences, as far as the memories say them, and the answer."""
        evidence = self._evidence()
        messages, numbered = self._prompt(evidence)
        if not numbered:
            yield self._bare("no_room")
            return
        cut, failure = 0, ""
        # Each once.
        told: dict[str, Told] = {}
        try:
            with closing(self._sentences(messages)) as written:
                for sentences in written:
                    self._look_again()
                    # What is left, by the numbers that the model read.
                    left = {one.number: one for one in numbered if _key(evidence[one.number - 1]) in self.found}
                    checked = [_checked(sentence, left) for sentence in sentences]
                    cut += checked.count(None)
                    for one in filter(None, checked):
                        if one.text not in told:
                            told[one.text] = Told(one.text, [evidence[number - 1] for number in one.memories])
                            yield told[one.text]
                    if not left:
                        # Nothing can be said any more, so that the model need not go on.
                        break
        except ModelError as error:
            self._count(error.prompt_tokens, error.completion_tokens)
            failure = error.code
        if self.streams or failure:
            self._look_again()
        yield self._whole(list(told.values()), cut=cut, failure=failure)

    def _prompt(self, evidence: Sequence[Finding]) -> tuple[list[Message], list[NumberedMemory]]:
        """What the model reads, with as many of the strongest as leave room for an answer; without room none."""
        speakers = {Role.USER: PERSON, Role.ASSISTANT: ASSISTANT}
        numbered = [
            NumberedMemory(
                number,
                FACT if finding.kind == GROUP_FACT else finding.kind,
                speakers.get(Role(finding.role), MEMORY) if finding.role else MEMORY,
                finding.created_at.astimezone(self._zone).date(),
                finding.text[:LONGEST_MEMORY],
            )
            for number, finding in enumerate(evidence, start=1)
        ]
        today, zone = self._today
        messages: list[Message] = []
        while numbered:
            messages = cited_answer.build(
                question=self.request.question, memories=numbered, today=today, time_zone=zone
            )
            if self.allowance.room_for(messages, cited_answer.ANSWER) >= LEAST_ROOM:
                break
            numbered.pop()
        return messages, numbered

    def _whole(self, told: Sequence[Told], *, cut: int, failure: str) -> Answer:
        """The answer, with those sentences of which all memories are still there, by the numbers of today."""
        now = {_key(one): number for number, one in enumerate(self._evidence(), start=1)}
        cited = [(one.text, [now.get(_key(memory), 0) for memory in one.memories]) for one in told]
        sentences = [Sentence(text, numbers) for text, numbers in cited if all(numbers)]
        if failure and not sentences:
            return self._bare(failure)
        status = AnswerStatus.ANSWERED if sentences else AnswerStatus.UNKNOWN
        return self._answer(status, sentences=sentences, cut=cut, failure=failure)

    def _sentences(self, messages: Sequence[Message]) -> Generator[Sequence[CitedSentence], None, None]:
        """What the model writes, as many at a time as have come. Errors: ModelError."""
        if self.streams:
            yield from self._as_they_come(messages)
        else:
            yield list(cited_answer.sentences_of(self._complete(messages, cited_answer.ANSWER, most=MOST_WRITTEN)))

    def _as_they_come(self, messages: Sequence[Message]) -> Generator[Sequence[CitedSentence], None, None]:
        form, reading = cited_answer.ANSWER, _Reading()
        bounds = self._within_bounds(messages, form, MOST_WRITTEN)
        try:
            with closing(client.stream(messages=messages, answer=form, has_left=self.has_left, **bounds)) as stream:
                completion = yield from reading.complete_ones(stream)
        except ModelError as error:
            if not error.completion_tokens:
                error.prompt_tokens, error.completion_tokens = self._used(messages, reading)
            raise
        except GeneratorExit:
            self._count(*self._used(messages, reading))
            raise
        read, written = self._used(messages, reading)
        self._count(completion.prompt_tokens or read, completion.completion_tokens or written)
        yield [one for one in cited_answer.sentences_of(completion.answer) if one not in reading.told]

    def _used(self, messages: Sequence[Message], reading: "_Reading") -> tuple[int, int]:
        """Tokens that were read and written in a stream, whose endpoint has not told them; 0 if nothing came of it."""
        if reading.so_far is None:
            return 0, 0
        tokenizer = of_model(self.config.model, unknown=CONSERVATIVE)
        return self.allowance.size_of(messages, cited_answer.ANSWER), tokens.count(reading.so_far.written, tokenizer)

    def _bare(self, why: str) -> Answer:
        """The memories alone."""
        status = AnswerStatus.EVIDENCE if self._may_answer else AnswerStatus.UNKNOWN
        is_told = status == AnswerStatus.EVIDENCE or self.allowance.calls
        return self._answer(status, failure=why if is_told else "")

    def _count(self, prompt_tokens: int, completion_tokens: int) -> None:
        """Count an answer at once, also for the tenant's daily caps."""
        self.allowance.add(prompt_tokens, completion_tokens)
        prices = self.config.prices
        used = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}
        spending.count(self.tenant, **used, prices=prices, now=self.now)
        spending.note(self.tenant, ModelUse.Purpose.ANSWERS, calls=1, spent=Spent(**used), prices=prices, now=self.now)

    def _answer(
        self, status: AnswerStatus, *, sentences: Sequence[Sentence] = (), cut: int = 0, failure: str = ""
    ) -> Answer:
        return Answer(
            status=status,
            sentences=sentences,
            evidence=self._evidence(),
            searches=self.searches,
            cut=cut,
            failure=failure,
            model=self.config.model if self.allowance.calls else "",
            calls=self.allowance.calls,
            prompt_tokens=self.allowance.prompt_tokens,
            completion_tokens=self.allowance.completion_tokens,
            cost=self.allowance.spent,
            restricted=self.first.restricted,
            serve=self.first.serve,
            zone=self.first.zone,
        )


def _key(found: Finding) -> tuple[str, object]:
    return found.kind, found.id


def _may_be_told(found: Finding) -> bool:
    """As in a context: what speaks to a model, and what nobody vouches for, is not told to one."""
    return not found.flagged and (found.kind != TURN or found.role in (Role.USER, Role.ASSISTANT))


def _checked(sentence: CitedSentence, told: Mapping[int, NumberedMemory]) -> Sentence | None:
    """The sentence with the memories that say it; None if they do not. Numbers that there are not say nothing."""
    # `told` has them by the numbers that the model read.
    cited = [told[number] for number in dict.fromkeys(sentence.memories) if number in told][:MOST_CITED]
    seen = " ".join(strip_invisible(sentence.text).split())
    text, places = supported(seen, [Memory(one.text, one.by, one.day) for one in cited])
    return Sentence(text, [cited[place].number for place in places]) if text else None
