"""How a fact stands to others of its person: what it took in or stands against, and what took its place."""

from dataclasses import dataclass

from django.db.models import Q

from memories.models import Fact, FactRelation, RelationType

MOST = 20


@dataclass(frozen=True)
class Related:
    """Another fact and how it stands to the one that is shown; `how` is a code of ours."""

    how: str
    fact: Fact


def related(fact: Fact) -> list[Related]:
    """Each other fact once, by what says most; two queries."""
    ties = FactRelation.objects.filter(Q(fact=fact) | Q(target=fact)).select_related("fact", "target")[: 2 * MOST]
    found = [Related("superseded_by", fact.superseded_by)] if fact.superseded_by else []
    found += [_of(tie, fact) for tie in sorted(ties, key=lambda tie: tie.type == RelationType.RELATED_TO)]
    found += [Related("supersedes", older) for older in Fact.objects.filter(superseded_by=fact)[:MOST]]
    once: dict[object, Related] = {}
    for one in found:
        once.setdefault(one.fact.pk, one)
    return list(once.values())[:MOST]


def _of(tie: FactRelation, fact: Fact) -> Related:
    if tie.fact_id == fact.pk:
        return Related("took_in" if tie.type == RelationType.DERIVED_FROM else tie.type, tie.target)
    return Related("part_of" if tie.type == RelationType.DERIVED_FROM else tie.type, tie.fact)
