"""What a context tells beside facts, episodes and turns: memory files, memories of plain kinds, passages of files that
came with turns, triples of the graph, and what the person's groups know; each as lines for the budget.

Keys' texts were judged when they were written, as facts are, and are not judged again; what an operator wrote stands.
"""

import uuid
from collections.abc import Collection
from datetime import datetime
from functools import partial
from typing import Any

from django.db.models import Case, Q, Value, When

from memories import conf
from memories.context.rendering import (
    MemoryLine,
    document_line,
    file_line,
    group_line,
    line_that_ages,
    one_line,
    plain_line,
    triple_line,
)
from memories.files import seeds
from memories.files.reading import FileTree
from memories.invisible import strip_invisible
from memories.kinds import Kind
from memories.models import ActorKind, Encoding, EndUser, FileVersion
from memories.models.memories.visibility import Conversations, Viewer
from memories.retrieval import document_search, group_search, triple_search
from memories.retrieval.evidence import Level
from memories.retrieval.hits import SearchFilters
from memories.retrieval.outdated import Written
from memories.retrieval.prepared_query import PreparedQuery
from memories.retrieval.triple_search import RankedTriple

# No budget has room for more, except for very short ones.
MOST_FILES = 50
# Of each file's text. Eight thousand tokens, the largest budget, are seldom more.
MOST_CHARACTERS = 40_000
# No budget has room for more, except for very short ones.
MOST_ENTRIES = 50
MOST_TRIPLES = 50
# How many of these a context is offered.
MOST_FACTS = 30
# So many passages at most: each can take 400 tokens. Of so many the best that speak to no model.
MOST_PASSAGES, LOOKED_AT = 5, 25


def file_lines(person: EndUser, *, agent_id: str, now: datetime) -> list[MemoryLine]:
    """The texts that this agent keeps about the person, each as one line that may be cut.

    Without scratch files, which belong to a conversation, and without the first text of a file that nobody wrote:
    nothing is remembered in it.
    """
    tree = FileTree(person.tenant, person, agent_id, now)
    order = Case(When(path=seeds.SEEDED, then=Value(0)), default=Value(1))
    ordered = tree.lasting_texts.order_by(order, "-updated_at", "path")
    columns = ("pk", "path", "actor_kind", "created_at", "updated_at")
    lines = []
    for place, row in enumerate(tree.beginnings(ordered, columns, most=MOST_FILES, characters=MOST_CHARACTERS + 1)):
        pk, path, actor_kind, created_at, changed_at, start = row
        text, is_cut = _whole_lines(start)
        if text.strip():
            shown: dict[str, Any] = {"row_id": pk, "path": path, "changed_at": changed_at, "place": place}
            line_of = partial(file_line, **shown, is_cut=is_cut, zone=person.clock)
            # An operator who writes has seen all of it.
            before = None if actor_kind == ActorKind.OPERATOR else partial(_file_before, pk, created_at)
            at = None if actor_kind == ActorKind.DREAM else changed_at
            lines.append(line_that_ages(line_of, Written(text, at, before)))
    return lines


def _file_before(pk: uuid.UUID, created_at: datetime, moment: datetime) -> str | None:
    """The text of a file at the moment; None if its version is not kept any more."""
    if created_at >= moment:
        return ""
    versions = FileVersion.objects.filter(file=pk, created_at__lt=moment, encoding=Encoding.UTF_8)
    return versions.order_by("-version").values_list("content", flat=True).first()


def _whole_lines(start: str) -> tuple[str, bool]:
    """The lines that were read to their end, and whether there are more."""
    if len(start) <= MOST_CHARACTERS:
        return start, False
    return start[: start.rfind("\n", 0, MOST_CHARACTERS) + 1], True


def plain_lines(kind: Kind, person: EndUser, *, agent_id: str) -> list[MemoryLine]:
    """The newest memories of a plain kind that this agent has, each as one line that may be cut."""
    assert kind.plain  # noqa: S101  (only those of PLAIN come here)
    rows = kind.rows.of(person.tenant, person).present().filter(agent_id=agent_id)
    columns = ("pk", kind.plain.topic, "content", "created_at")
    found = rows.order_by("-created_at", "-id").values_list(*columns)[:MOST_ENTRIES]
    return [
        line_that_ages(
            partial(plain_line, kind.name, row_id=pk, topic=topic, at=at, place=place, zone=person.clock),
            Written(text, at),
        )
        for place, (pk, topic, text, at) in enumerate(found)
    ]


def document_lines(
    person: EndUser, query: PreparedQuery, conversations: Conversations, *, all_of_them: bool, now: datetime
) -> list[MemoryLine]:
    """The passages that answer the query best, of conversations that are shown to who asks, each as one line that may
    be cut: what a file says, and nobody's word. Without those that speak to a model, and, unless `all_of_them`, without
    those that have nothing to do with the query."""
    found, _looked_at = document_search.hits(person, query, SearchFilters(), conversations, limit=LOOKED_AT, now=now)
    served = [one for one in found if not one.flagged and (all_of_them or one.evidence_level != Level.NONE)]
    lines = []
    for place, one in enumerate(served[:MOST_PASSAGES]):
        shown: dict[str, Any] = {
            "row_id": one.id, "name": one.name or "", "page": one.page, "where": one.place or "", "place": place,
            "score": one.score, "score_parts": one.score_parts, "level": one.evidence_level,
        }  # fmt: skip
        line_of = partial(document_line, **shown, at=one.created_at, zone=person.clock)
        lines.append(line_that_ages(line_of, Written(one.text, one.created_at)))
    return lines


def graph_lines(
    person: EndUser, viewer: Viewer, query: str, *, served: Collection[uuid.UUID], rules: conf.Rules, now: datetime
) -> list[MemoryLine]:
    """The triples, each as one line; without those of `told`, the facts that the context tells already. What several
    facts say in the same words is told once."""
    rows = triple_search.triples(person, viewer, query, rules=rules, now=now)
    # A condition on a fact that is not there is neither true nor false.
    found = triple_search.read(rows.filter(Q(fact=None) | ~Q(fact__in=list(served))), MOST_TRIPLES)
    shown: dict[str, RankedTriple] = {}
    for one in found:
        shown.setdefault(one.triple.sentence.casefold(), one)
    return [_triple_line(one, place, person) for place, one in enumerate(shown.values())]


def _triple_line(one: RankedTriple, place: int, person: EndUser) -> MemoryLine:
    line_of = partial(triple_line, one.triple, place=place, score=one.score, score_parts=one.parts, zone=person.clock)
    written = one.written
    return line_that_ages(line_of, written) if written else line_of(text=one.triple.sentence)


def group_lines(person: EndUser, query: PreparedQuery | None, *, now: datetime) -> list[MemoryLine]:
    """The facts that answer the query best, without a query the newest; shown by group. One statement."""
    found = group_search.newest(person, SearchFilters())
    ranking = group_search.rank(found, query, now) if query and found else None
    places = ranking.best(MOST_FACTS) if ranking else list(range(min(len(found), MOST_FACTS)))
    levels = ranking.evidence().levels if ranking else []
    # Two groups of one name stand below one heading.
    names = {place: one_line(strip_invisible(found[place].group__name)) for place in places}
    order = {name: rank for rank, name in enumerate(dict.fromkeys(names.values()))}
    lines = []
    for rank, place in enumerate(places):
        fact, name = found[place], names[place]
        shown: dict[str, Any] = {"row_id": fact.id, "group": name, "at": fact.said_at, "place": (order[name], rank)}
        if ranking:
            shown |= {"score": ranking.score(place), "score_parts": ranking.parts(place), "level": levels[place]}
        line_of = partial(group_line, **shown, zone=person.clock)
        # What others said of themselves was neither corrected nor forgotten here.
        is_own = fact.is_own
        lines.append(
            line_that_ages(line_of, Written(fact.content, fact.said_at)) if is_own else line_of(text=fact.content)
        )
    return lines
