"""The graph in a context: what holds of the things that the query names, or of the person where there is no query.

Stated names were judged when they were written, as facts are, and are not judged again.
"""

import uuid
from collections.abc import Collection
from datetime import datetime

from django.db.models import Q

from memories import conf
from memories.context.rendering import Line, triple_line
from memories.models import EndUser
from memories.models.memories.visibility import Viewer
from memories.retrieval import triple_search
from memories.retrieval.triple_search import RankedTriple

MOST_TRIPLES = 50


def graph_lines(
    person: EndUser, viewer: Viewer, query: str, *, told: Collection[uuid.UUID], rules: conf.Rules, now: datetime
) -> list[Line]:
    """The triples, each as one line; without those of `told`, the facts that the context tells already. What several
    facts say in the same words is told once."""
    rows = triple_search.triples(person, viewer, query, rules=rules, now=now)
    # A condition on a fact that is not there is neither true nor false.
    found = triple_search.read(rows.filter(Q(fact=None) | ~Q(fact__in=list(told))), MOST_TRIPLES)
    shown: dict[str, RankedTriple] = {}
    for one in found:
        shown.setdefault(one.triple.sentence.casefold(), one)
    return [
        triple_line(one.triple, place=place, score=one.score, score_parts=one.parts)
        for place, one in enumerate(shown.values())
    ]
