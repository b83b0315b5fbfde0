"""What the groups of a person know, in a context: those of which the person is a member at this moment.

Keys' texts were judged when they were stated, as facts are, and are not judged again.
"""

from memories.context.rendering import Line, group_line
from memories.models import EndUser, GroupFact
from memories.retrieval.group_search import NEWEST
from memories.retrieval.prepared_query import PreparedQuery
from memories.scoring import terms

# How many of these a context is offered.
MOST_FACTS = 30


def group_lines(person: EndUser, query: PreparedQuery | None) -> list[Line]:
    """The facts with the most words of the query, without a query the newest; shown by group. One statement."""
    rows = GroupFact.objects.told_to(person)
    found = rows.order_by("-said_at", "-id").values_list("pk", "group", "group__name", "content", "said_at")[:NEWEST]
    wanted = set(query.terms) if query else set()
    ranked = sorted(
        ((_share(wanted, content), pk, group, name, content, at) for pk, group, name, content, at in found),
        key=lambda one: -one[0],
    )[:MOST_FACTS]
    order = {group: place for place, group in enumerate(dict.fromkeys(one[2] for one in ranked))}
    return [
        group_line(row_id=pk, group=name, text=content, at=at, place=(order[group], place), score=share)
        for place, (share, pk, group, name, content, at) in enumerate(ranked)
    ]


def _share(wanted: set[str], content: str) -> float:
    """The share of the query's words that the text has."""
    return len(wanted & set(terms.tokens(content))) / len(wanted) if wanted else 0.0
