"""Contexts: one sequence of lines that does not depend on the budget, of which the longest prefix that fits is told."""

import hashlib
import json
import time
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from django.db.models import F
from numpy.typing import NDArray

from memories import conf
from memories.context import log, recalled_turns, relevance
from memories.context.budget import Block
from memories.context.facts import FactLines, fact_lines
from memories.context.other_memories import document_lines, file_lines, graph_lines, group_lines, plain_lines
from memories.context.parts import DEFAULT_INCLUDE, LIMITS, NOT_AS_OF
from memories.context.recalled_turns import Recallable, Recalled, Said
from memories.context.relevance import BUDGET, RELEVANT
from memories.context.rendering import MemoryLine, episode_line, field_line, line_that_ages, profile_line, turn_line
from memories.context.window import OpenWindow, open_window
from memories.kinds import PLAIN
from memories.llm import tokens
from memories.llm.tokenizers import DEFAULT_TOKENIZER
from memories.models import SENT_AT, ActorKind, EndUser, ProfileRevision, ProfileSection, Role, Section, Tenant, Turn
from memories.models.folding import bare, fold
from memories.models.memories.visibility import Conversations, Viewer
from memories.profiles import read_profiles, schemas_for, statement_of
from memories.retrieval import episode_search, recalls
from memories.retrieval.episode_search import EpisodeIndex, RankedEpisodes, VisibleEpisode
from memories.retrieval.evidence import Level, strongest
from memories.retrieval.hits import INDEX
from memories.retrieval.outdated import Outdated, Written
from memories.retrieval.prepared_query import PreparedQuery, prepare_in
from memories.retrieval.serving import Audience, ServedSection, audience
from memories.telemetry import traces
from memories.telemetry.families import CONTEXT_SECONDS, CONTEXT_TOKENS
from memories.text.memory_block import CLOSING, ENGLISH, FRAMES, OPENING, Frame

# The ranked facts stand between these two halves of the profile (rules.md, 9.3).
BEFORE_FACTS = (Section.WORK_CONTEXT, Section.PERSONAL_CONTEXT, Section.TOP_OF_MIND)
AFTER_FACTS = (Section.RECENT_MONTHS, Section.EARLIER_CONTEXT, Section.LONG_TERM_BACKGROUND)
UNEXTRACTED_TURNS = 50
# Episodes beyond the limit that are named: a heavy person has thousands.
MOST_DROPPED = 200
# (kind, id) of a line.
Told = tuple[str, str]


@dataclass(frozen=True)
class ContextRequest:
    """A request of an agent.

    `query`: what it is about to answer; without one the turns are those that were said last. `session_id`: its
    conversation, whose window it gets with the working memory. `max_tokens` 0..8,000 bounds the rendered block.
    `limits`: how many of a part, by its name (parts.py). `as_of`: what was true, and said, by then; parts that are
    of today are left out. `guidelines`: what to remember and what never, inside the same bound. `blocks`: what
    stands in every context and what this query brings, in a block each. `told`: (kind, id) of lines that the
    conversation has already; they are not told again, but for those that stand in every context. `standing`: the
    lines of the block that stands with the conversation already, if there is one: it is not made again, and what it
    lacks comes with the other block. `fill`: beside these lines and what `include` names, only what has to do with
    the query (RELEVANT), or whatever there is until the budget is full (BUDGET). `min_score`, `min_evidence`: what
    of the memories that the query ranks may be told. `scores`: facts with confidence. `shown`: who asks has so many
    of the session's newest turns. `profiles`: names of the tenant's own profiles that are told, beside those that
    every context has.
    """

    user_id: str
    agent_id: str = ""
    session_id: str = ""
    query: str = ""
    max_tokens: int = 2000
    include: frozenset[str] = DEFAULT_INCLUDE
    tokenizer: str = DEFAULT_TOKENIZER
    roles: tuple[str, ...] = ()
    limits: Mapping[str, int] = field(default_factory=dict)
    as_of: datetime | None = None
    guidelines: bool = False
    blocks: bool = False
    told: frozenset[Told] = frozenset()
    standing: frozenset[Told] | None = None
    fill: str = RELEVANT
    min_score: float | None = None
    min_evidence: Level = Level.NONE
    scores: bool = False
    shown: int = 0
    profiles: tuple[str, ...] = ()

    def wants(self, part: str) -> bool:
        """Whether it asks for this part, which can be told as of the moment that it names."""
        return part in self.include and (self.as_of is None or part not in NOT_AS_OF)


@dataclass(frozen=True)
class ContextBlock:
    """One of the two blocks of a context: its rendered text with the frame, empty for nothing, and what is in it.

    `told`: the lines that it tells as a whole, for `ContextRequest.told` of later requests of the conversation.
    """

    memory: str = ""
    token_count: int = 0
    items: list[dict[str, Any]] = field(default_factory=list)
    told: frozenset[Told] = frozenset()

    @property
    def revision(self) -> str:
        """A hash of what it tells: the same text has the same one, whatever it scored."""
        return hashlib.sha256(self.memory.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass(frozen=True)
class Context:
    """The rendered block, its items, what was dropped, and the messages where the working memory is asked for.

    `guidelines`: None unless they were asked for. `token_count` counts them, too. `stable` and `volatile`: None unless
    two blocks were asked for; `memory` has one after the other. `evidence`: how strong what the query found is; None
    without a query. `degraded`: as of a search.
    """

    memory: str
    token_count: int
    max_tokens: int
    tokenizer: str
    items: list[dict[str, Any]] = field(default_factory=list)
    dropped: list[dict[str, Any]] = field(default_factory=list)
    restricted: bool = False
    serve: bool = True
    messages: list[dict[str, Any]] | None = None
    guidelines: str | None = None
    stable: ContextBlock | None = None
    volatile: ContextBlock | None = None
    evidence: Level | None = None
    degraded: str | None = None

    @cached_property
    def revision(self) -> str:
        """A hash of everything in the answer."""
        return hashlib.sha256(json.dumps(vars(self), default=str, sort_keys=True).encode()).hexdigest()[:32]


class _Task(NamedTuple):
    """A request about a person whose memories may be served, with everything that its answer depends on."""

    audience: Audience
    person: EndUser
    request: ContextRequest
    query: PreparedQuery | None
    window: OpenWindow
    rules: conf.Rules
    now: datetime
    frame: Frame
    conversations: Conversations
    outdated: Outdated
    turns: Recallable | None

    @property
    def is_filled(self) -> bool:
        return self.request.fill == BUDGET

    def limit(self, part: str) -> int:
        """How many of the part: as the request says, else as the tenant does."""
        tenants: int = getattr(self.rules, LIMITS[part].rule)
        return self.request.limits.get(part, tenants)


class _Sequence(NamedTuple):
    """Lines that take the budget before recalled turns, in their order.

    `texts` that stand for the turns that say them, (kind, id) of what exceeds a limit, and ids of ranked lines. An
    episode that quotes a sentence of a turn does not stand for that turn: the rest of it would be told nowhere. With it
    left out a tenth of LoCoMo's answers were. `is_little`: so little is there that all of it is told. `evidence`: of
    all that the query ranked. `said` by the turns among the lines.
    """

    lines: list[MemoryLine]
    texts: list[str]
    said: frozenset[Said]
    beyond: list[tuple[str, str]]
    ranked: set[uuid.UUID]
    is_little: bool
    evidence: Level | None


def build(
    *,
    tenant: Tenant,
    request: ContextRequest,
    now: datetime,
    key_id: uuid.UUID | None = None,
    noted: bool = True,
    outdated: Outdated | None = None,
) -> Context:
    """The person's context within the budget; unknown, restricted and switched-off people get an empty one.

    `noted=False`: an operator looks, so what the query recalls does not fade later, and nothing is logged. `key_id`:
    the API key that asks. `outdated`: the person's, where the caller has read it.
    """
    began = time.perf_counter()
    with_profile, with_messages = request.wants("profile"), request.wants("working_memory")
    found = audience(tenant=tenant, user_id=request.user_id, with_profile=with_profile, agent_id=request.agent_id)
    frame = FRAMES.get(tenant.language, ENGLISH)
    guidelines, cost = _guidelines(request, found, frame)
    if found.person is None:
        nothing = Context(
            "",
            cost,
            request.max_tokens,
            request.tokenizer,
            messages=[] if with_messages else None,
            guidelines=guidelines,
            stable=ContextBlock() if request.blocks else None,
            volatile=ContextBlock() if request.blocks else None,
            evidence=Level.NONE if request.query else None,
        )
        return replace(nothing, restricted=found.restricted, serve=found.serve)
    frame = frame.in_zone(found.person.clock)
    rules = conf.rules(tenant)
    outdated = outdated or Outdated(found.person, as_of=request.as_of, has_ended=found.has_ended)
    window = OpenWindow()
    if with_messages and request.session_id:
        window = open_window(
            found.person, agent_id=request.agent_id, session_id=request.session_id, rules=rules, shown=request.shown
        )
        window = replace(window, summary=outdated.told(Written(window.summary)))
    asked = found.person.local(request.as_of or now)
    query = prepare_in(found.space, request.query, asked=asked) if request.query else None
    conversations = Conversations.of(tenant, agent_id=request.agent_id, as_of=request.as_of)
    turns = None
    if query and request.wants("turns") and request.limits.get("turns") != 0:
        room, is_filled = request.max_tokens, request.fill == BUDGET
        turns = recalled_turns.recallable(found.person, query, window, conversations, room=room, is_filled=is_filled)
    task = _Task(found, found.person, request, query, window, rules, now, frame, conversations, outdated, turns)
    sequence = _sequence(task)
    blocks = _blocks(task, sequence, request.max_tokens - cost)
    degraded = None if turns is None or turns.is_whole else INDEX
    built = replace(_context(blocks, sequence.beyond, request), evidence=sequence.evidence, degraded=degraded)
    if guidelines is not None:
        built = replace(built, guidelines=guidelines, token_count=built.token_count + cost)
    # Only what was ranked for the query was recalled: the other lines are in every context.
    if query and noted and not request.as_of:
        ranked = [(line.kind, line.id) for block in blocks for line in block.lines if line.id in sequence.ranked]
        recalls.note_all(ranked, tenant_id=tenant.pk, now=now)
    if with_messages:
        built = replace(built, messages=window.messages(*_shown(built), frame=frame))
    if noted:
        took = time.perf_counter() - began
        CONTEXT_SECONDS.observe(took)
        CONTEXT_TOKENS.observe(built.token_count)
        traces.record("context", took, tokens=built.token_count, items=len(built.items), tenant=tenant.slug)
        _log(task, built, key_id, took=took)
    return built


def _guidelines(request: ContextRequest, found: Audience, frame: Frame) -> tuple[str | None, int]:
    """The guidelines and their tokens; empty where they do not fit, and where nothing may be written or served."""
    if not request.guidelines:
        return None, 0
    if found.restricted or not found.serve:
        return "", 0
    cost = tokens.count_once(frame.guidelines, request.tokenizer)
    return (frame.guidelines, cost) if cost <= request.max_tokens else ("", 0)


def _log(task: _Task, built: Context, key_id: uuid.UUID | None, *, took: float) -> None:
    request = task.request
    log.note(
        log.NotedContext(
            person=task.person,
            agent_id=request.agent_id,
            session=request.session_id,
            key_id=key_id,
            query=request.query,
            memory=built.memory,
            items=[(item["kind"], item["id"], item["score"]) for item in built.items],
            left_out=len(built.dropped),
            token_count=built.token_count,
            max_tokens=built.max_tokens,
            as_of=request.as_of,
            revision=built.revision,
            took_ms=round(took * 1000),
            at=task.now,
        )
    )


def _sequence(task: _Task) -> _Sequence:
    """Every line but those of recalled turns, without the turns and episodes that the window shows, and without what
    does not hold any more: all that is told beside facts and turns passes here."""
    profile = defaultdict[str, list[MemoryLine]](list)
    for section in task.audience.profile:
        profile[section.section].append(_profile_line(section, task))
    own = _own_profiles(task)
    facts = _facts(task).without({line.id for line in own})
    graph = _graph(task, facts)
    shared = [*graph, *_groups(task), *_files(task), *_plain(task)]
    episodes = _episodes(task)
    unextracted = _unextracted(task) if task.request.wants("unextracted") else []
    before = [line for name in BEFORE_FACTS for line in profile[name]]
    after = [line for name in AFTER_FACTS for line in profile[name]]
    episode_lines = [_episode_line(episodes, place, task.person.clock) for place in episodes.shown]
    lines = [*facts.instructions, *own, *before, *facts.ranked, *shared, *episode_lines, *after, *_documents(task)]
    lines += [one.line for one in unextracted]
    is_little = _is_little(task, facts)
    served = [one for line in lines if _is_wanted(line, task, is_little) and (one := line.without(task.outdated))]
    summed_up = {one.of.id for one in episodes.shown.values() if not one.of.is_extractive}
    levels = [line.level for line in lines if line.level] + ([task.turns.level] if task.turns else [])
    return _Sequence(
        served,
        [facts.texts[line.id] for line in served if line.id in facts.texts]
        + [line.written.text for line in served if line.written and line.id in summed_up],
        frozenset(one.key for one in unextracted),
        [("fact", fact) for fact in facts.beyond] + [("episode", episode) for episode in episodes.beyond],
        {line.id for line in (*facts.ranked, *episode_lines)},
        is_little,
        strongest(levels) if task.query else None,
    )


def _is_little(task: _Task, facts: FactLines) -> bool:
    """Whether so little is remembered that a query chooses nothing."""
    turns = task.turns.tokens if task.turns else 0
    return turns + relevance.FACT * (len(facts.ranked) + len(facts.beyond)) <= relevance.LITTLE


def _is_wanted(line: MemoryLine, task: _Task, is_little: bool) -> bool:
    """Whether the line may be told: what was not ranked for a query, and of the rest what has to do with it."""
    request = task.request
    if line.level is None or line.stands:
        return True
    if request.min_score is not None and (line.score or 0.0) < request.min_score:
        return False
    return line.level.rank >= request.min_evidence.rank and (task.is_filled or is_little or line.level != Level.NONE)


def _profile_line(one: ServedSection, task: _Task) -> MemoryLine:
    """An operator who writes has seen all of it; a key may send again what it read; a job carries on what was there."""
    at = None if one.actor_kind == ActorKind.RUN else one.updated_at
    before = partial(_section_before, one.id) if one.actor_kind == ActorKind.KEY else None
    line_of = partial(profile_line, row_id=one.id, section=one.section, frame=task.frame)
    return line_that_ages(line_of, Written(one.summary, at, before))


def _section_before(pk: uuid.UUID, moment: datetime) -> str:
    """The text of a section of the profile at the moment."""
    if (section := ProfileSection.objects.filter(pk=pk).first()) is None:
        return ""
    versions = ProfileRevision.objects.of(section).filter(created_at__lt=moment).exclude(version=None)
    return versions.order_by("-created_at", "-id").values_list("after", flat=True).first() or ""


def _own_profiles(task: _Task) -> list[MemoryLine]:
    """The fields of the tenant's own profiles, a line each: of those in every context, and of those asked for."""
    request, tenant = task.request, task.person.tenant
    in_context = tenant.context_profiles and "profile" in request.include
    if not in_context and not request.profiles:
        return []
    rows = [
        row
        for row in schemas_for(tenant, request.agent_id)
        if (in_context and row.in_context) or row.name in request.profiles
    ]
    viewer = Viewer(request.agent_id, request.roles, request.as_of)
    found = [one for profile in read_profiles(task.person, rows, viewer, now=task.now) for one in profile.values]
    return [
        field_line(row_id=one.fact.pk, text=statement_of(one.field, one.value), place=place)
        for place, one in enumerate(found)
    ]


def _facts(task: _Task) -> FactLines:
    request, limit = task.request, task.limit("facts")
    if not request.wants("facts"):
        return FactLines()
    viewer = Viewer(request.agent_id, request.roles, request.as_of)
    return fact_lines(
        task.person, viewer, task.query, limit=limit, rules=task.rules, now=task.now, confident=request.scores
    )


def _graph(task: _Task, facts: FactLines) -> list[MemoryLine]:
    request = task.request
    if not request.wants("graph"):
        return []
    viewer = Viewer(request.agent_id, request.roles, request.as_of)
    served = {line.id for line in (*facts.instructions, *facts.ranked)}
    return graph_lines(task.person, viewer, request.query, served=served, rules=task.rules, now=task.now)


def _groups(task: _Task) -> list[MemoryLine]:
    if not task.audience.has_groups or not task.request.wants("groups"):
        return []
    return group_lines(task.person, task.query, now=task.now)


def _files(task: _Task) -> list[MemoryLine]:
    if not task.request.wants("files"):
        return []
    return file_lines(task.person, agent_id=task.request.agent_id, now=task.now)


def _plain(task: _Task) -> list[MemoryLine]:
    request = task.request
    kinds = [kind for kind in PLAIN if request.wants(kind.plural)]
    return [line for kind in kinds for line in plain_lines(kind, task.person, agent_id=request.agent_id)]


def _documents(task: _Task) -> list[MemoryLine]:
    """Nothing without a query: nobody has said what of a file matters."""
    if task.query is None or not task.request.wants("documents"):
        return []
    return document_lines(task.person, task.query, task.conversations, all_of_them=task.is_filled, now=task.now)


class _Episodes(NamedTuple):
    """Those within the limit, the ids of the next ones, and their ranking, if there is a query."""

    shown: dict[int, VisibleEpisode]
    beyond: list[str]
    ranked: RankedEpisodes | None


def _episodes(task: _Task) -> _Episodes:
    """The newest episodes, or those that answer the query best."""
    _, person, request, query, _, rules, now, *_ = task
    if not task.audience.has_episodes or not request.wants("episodes"):
        return _Episodes({}, [], None)
    index = episode_search.open_index(person, query.space if query else None, rules=rules, now=now)
    allowed = _not_told_besides(task, index)
    limit = task.limit("episodes")
    ranked = episode_search.rank(index, query, allowed) if query else None
    most = limit + MOST_DROPPED
    places = ranked.best(most) if ranked else np.flatnonzero(allowed)[:most].tolist()
    beyond = [str(index.episodes[place].id) for place in places[limit:]]
    return _Episodes(episode_search.read(person, index, places[:limit]), beyond, ranked)


def _not_told_besides(task: _Task, index: EpisodeIndex) -> NDArray[np.bool_]:
    """Which episodes may be told that neither the window nor recalled turns tell."""
    window, turns = task.window, task.turns
    allowed = index.seen(task.conversations)
    for place in index.of_sessions.get(window.session, []) if window.session else ():
        one = index.episodes[place]
        if window.covers(session=one.session, first=one.first_number, last=one.last_number):
            allowed[place] = False
    if turns and not task.is_filled:
        # The turns that its sentences are taken from say it themselves.
        allowed[index.extractive] &= ~turns.have(index.stretches)
    return allowed


def _episode_line(found: _Episodes, place: int, zone: tzinfo) -> MemoryLine:
    episode, ranked = found.shown[place], found.ranked
    one = episode.of
    line_of = partial(
        episode_line,
        row_id=one.id,
        ended_at=one.ended_at,
        score=ranked.ranking.score(place) if ranked else None,
        score_parts=ranked.ranking.parts(place) if ranked else {"confidence": one.quality, "decay": one.left},
        zone=zone,
        level=ranked.levels[place] if ranked else None,
    )
    return line_that_ages(line_of, episode.written)


def _unextracted(task: _Task) -> Recalled:
    """The newest turns beyond their session's watermark. The newest take the budget first."""
    person, window = task.person, task.window
    turns = Turn.objects.filter(tenant=person.tenant, end_user=person, number__gt=F("session__queue__extracted_number"))
    turns = (
        turns.exclude(content="")
        .exclude(metadata__contains={"hide_from_ui": True})
        .exclude(session=window.session, number__in=window.numbers)
        .filter(task.conversations.turns(person.pk), role__in=[Role.USER, Role.ASSISTANT])
    )
    newest = list(turns.order_by(SENT_AT.desc(), "session", "-number")[:UNEXTRACTED_TURNS])
    zone = person.clock
    return recalled_turns.sayings(newest, task.outdated, lambda turn, text, _: turn_line(turn, text, zone=zone))


def _blocks(task: _Task, sequence: _Sequence, max_tokens: int) -> list[Block]:
    """The block of all lines; or one of what stands in every context, and one of the others in the room it leaves.
    Where that one stands already, it is left as it is, and what it lacks is one of the others."""
    request, held = task.request, task.request.standing
    told = request.told | (held or frozenset())
    fresh = [line for line in sequence.lines if (line.stands and held is None) or line.key not in told]
    blocks = [Block(max_tokens, request.tokenizer, task.frame)]
    if request.blocks:
        blocks[0].offer(line for line in fresh if line.stands and held is None)
        fresh = [line for line in fresh if not line.stands or held is not None]
        left = max_tokens - blocks[0].token_count - _between(blocks, request)
        blocks.append(Block(left, request.tokenizer, task.frame))
        if blocks[0].is_full:
            blocks[1].left_out.extend(fresh)
            return blocks
    blocks[-1].offer(fresh)
    if request.wants("turns") and not blocks[-1].is_full:
        _recall_turns(blocks[-1], task, sequence)
    return blocks


def _between(blocks: Sequence[Block], request: ContextRequest) -> int:
    """Tokens of what parts two blocks; none with an encoding whose tokens take a line break in."""
    if not all(block.lines for block in blocks):
        return 0
    parts = (tokens.count_once(text, request.tokenizer) for text in (CLOSING, OPENING))
    return max(0, tokens.count_once(f"{CLOSING}\n{OPENING}", request.tokenizer) - sum(parts))


def _shown(built: Context) -> tuple[str, str]:
    """What stands before a conversation, and what stands before its newest message."""
    if built.stable is None or built.volatile is None:
        return built.memory, ""
    return built.stable.memory, built.volatile.memory


def _recall_turns(block: Block, task: _Task, sequence: _Sequence) -> None:
    """Fill the room that is left with turns that are not shown yet and have to do with the query, or with any."""
    request, limit = task.request, task.request.limits.get("turns")
    most = block.room // recalled_turns.LEAST
    if task.query is None and not task.is_filled and limit is None:
        most = min(most, recalled_turns.NEWEST)
    left = most if limit is None else min(most, limit)
    if left <= 0:
        return
    bounds = recalled_turns.Bounds(block.room, task.is_filled, limit, request.min_score, request.min_evidence)
    batches = _turns(task, sequence, bounds)
    if not batches:
        return
    again = task.query is None or task.is_filled or sequence.is_little
    shown = {line.key for one in block.lines for line in (one, *one.also)} | request.told
    said = sequence.said | {(turn.role, bare(fold(turn.content))) for turn in task.window.turns}
    for batch in recalled_turns.fresh(batches, request.query, sequence.texts, again=again, said=said, shown=shown):
        served = batch.lines[:left]
        block.offer(served)
        block.named.extend(batch.named)
        left -= len(served)
        if block.is_full or not left:
            break
    block.lengthen(None if task.is_filled else recalled_turns.ROOMY)


def _turns(task: _Task, sequence: _Sequence, bounds: recalled_turns.Bounds) -> Iterable[recalled_turns.Recalled]:
    outdated = task.outdated
    if task.turns is None:
        newest = recalled_turns.latest(task.person, task.window, task.conversations, bounds=bounds, outdated=outdated)
        return [newest] if newest else []
    return recalled_turns.answering(task.turns, bounds, all_of_them=sequence.is_little, outdated=outdated)


def _context(blocks: Sequence[Block], beyond: Sequence[tuple[str, str]], request: ContextRequest) -> Context:
    parts = [_block(one) for one in blocks]
    stable, volatile = parts if request.blocks else (None, None)
    left_out = [line for block in blocks for one in block.left_out for line in (one, *one.also)]
    return Context(
        memory="\n".join(one.memory for one in parts if one.memory),
        token_count=sum(one.token_count for one in parts) + (_between(blocks, request) if request.blocks else 0),
        max_tokens=request.max_tokens,
        tokenizer=request.tokenizer,
        items=[item for one in parts for item in one.items],
        dropped=[{"kind": line.kind, "id": str(line.id), "reason": "budget"} for line in left_out]
        + [{"kind": kind, "id": row_id, "reason": "limit"} for kind, row_id in beyond],
        stable=stable,
        volatile=volatile,
    )


def _block(block: Block) -> ContextBlock:
    named = list(_named(block))
    return ContextBlock(
        memory=block.memory,
        token_count=block.token_count,
        items=[item for item, _ in named],
        told=frozenset((item["kind"], item["id"]) for item, is_whole in named if is_whole),
    )


def _named(block: Block) -> Iterator[tuple[dict[str, Any], bool]]:
    """The item of each line, and of each that it stands for, and whether what it says is told as a whole."""
    for line, cost in zip(block.lines, block.costs, strict=True):
        is_whole = line.whole is None
        yield _item(line, cost), is_whole
        for one in line.also:
            yield _item(one, 0), is_whole
    for line in block.named:
        yield _item(line, 0), line.whole is None


def _item(line: MemoryLine, cost: int) -> dict[str, Any]:
    return {
        "kind": line.kind,
        "id": str(line.id),
        "score": line.score,
        "score_parts": line.score_parts or {},
        "tokens": cost,
    }
