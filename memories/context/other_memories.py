"""What a context tells beside facts, episodes and turns: memory files, an agent's diary, triples of the graph, and what
the person's groups know; each as lines for the budget.

Keys' texts were judged when they were written, as facts are, and are not judged again; what an operator wrote stands.
"""

import uuid
from collections.abc import Collection
from datetime import datetime

from django.db.models import Case, Q, Value, When
from django.db.models.functions import Left

from memories import conf
from memories.context.rendering import MemoryLine, diary_line, file_line, group_line, triple_line
from memories.files import paths, seeds
from memories.files.reading import FileTree
from memories.models import DiaryEntry, Encoding, EndUser, GroupFact
from memories.models.memories.visibility import Viewer
from memories.retrieval import triple_search
from memories.retrieval.group_search import NEWEST
from memories.retrieval.prepared_query import PreparedQuery
from memories.retrieval.triple_search import RankedTriple
from memories.scoring import terms

# No budget has room for more, except for very short ones.
MOST_FILES = 50
# Of each file's text. Eight thousand tokens, the largest budget, are seldom more.
MOST_CHARACTERS = 40_000
# No budget has room for more, except for very short ones.
MOST_ENTRIES = 50
MOST_TRIPLES = 50
# How many of these a context is offered.
MOST_FACTS = 30


def file_lines(person: EndUser, *, agent_id: str, now: datetime) -> list[MemoryLine]:
    """The texts that this agent keeps about the person, each as one line that may be cut.

    Without scratch files, which belong to a conversation, and without the first text of a file that nobody wrote:
    nothing is remembered in it.
    """
    tree = FileTree(person.tenant, person, agent_id, now)
    rows = tree.present.filter(encoding=Encoding.UTF_8).exclude(path__startswith=paths.SCRATCH)
    order = Case(When(path=seeds.SEEDED, then=Value(0)), default=Value(1))
    # The order first: the database would read every text to sort the rows.
    chosen = list(rows.order_by(order, "-updated_at", "path").values_list("pk", flat=True)[:MOST_FILES])
    read = tree.present.filter(pk__in=chosen).annotate(start=Left("content", MOST_CHARACTERS + 1))
    found = {row[0]: row for row in read.values_list("pk", "path", "updated_at", "start")} if chosen else {}
    lines = []
    for place, pk in enumerate(chosen):
        if row := found.get(pk):
            _, path, changed_at, start = row
            text, is_cut = _whole_lines(start)
            if text.strip():
                lines.append(
                    file_line(
                        row_id=pk,
                        path=path,
                        text=text,
                        changed_at=changed_at,
                        place=place,
                        is_cut=is_cut,
                        zone=person.clock,
                    )
                )
    return lines


def _whole_lines(start: str) -> tuple[str, bool]:
    """The lines that were read to their end, and whether there are more."""
    if len(start) <= MOST_CHARACTERS:
        return start, False
    return start[: start.rfind("\n", 0, MOST_CHARACTERS) + 1], True


def diary_lines(person: EndUser, *, agent_id: str) -> list[MemoryLine]:
    """The newest entries of this agent's diary, each as one line that may be cut."""
    rows = DiaryEntry.objects.of(person.tenant, person).present().filter(agent_id=agent_id)
    found = rows.order_by("-created_at", "-id").values_list("pk", "topic", "content", "created_at")[:MOST_ENTRIES]
    return [
        diary_line(row_id=pk, topic=topic, text=text, at=at, place=place, zone=person.clock)
        for place, (pk, topic, text, at) in enumerate(found)
    ]


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
    return [
        triple_line(one.triple, place=place, score=one.score, score_parts=one.parts, zone=person.clock)
        for place, one in enumerate(shown.values())
    ]


def group_lines(person: EndUser, query: PreparedQuery | None) -> list[MemoryLine]:
    """The facts with the most words of the query, without a query the newest; shown by group. One statement."""
    rows = GroupFact.objects.served_to(person)
    found = rows.order_by("-said_at", "-id").values_list("pk", "group", "group__name", "content", "said_at")[:NEWEST]
    wanted = set(query.terms) if query else set()
    ranked = sorted(
        ((_share(wanted, content), pk, group, name, content, at) for pk, group, name, content, at in found),
        key=lambda one: -one[0],
    )[:MOST_FACTS]
    order = {group: place for place, group in enumerate(dict.fromkeys(one[2] for one in ranked))}
    return [
        group_line(
            row_id=pk,
            group=name,
            text=content,
            at=at,
            place=(order[group], place),
            score=share,
            zone=person.clock,
        )
        for place, (share, pk, group, name, content, at) in enumerate(ranked)
    ]


def _share(wanted: set[str], content: str) -> float:
    """The share of the query's words that the text has."""
    return len(wanted & set(terms.tokens(content))) / len(wanted) if wanted else 0.0
