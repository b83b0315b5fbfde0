"""The graph of two people who are merged: triples move to entities of the same names.

What holds openly of both, and stays once, is left with the id that leads to the survivor.
"""

from collections.abc import Sequence

from django.db.models import Exists, OuterRef, Q

from memories.curation.change_sets import Changes
from memories.curation.people.merging.locks import Pair
from memories.curation.people.merging.rows import moved
from memories.graph import naming
from memories.models import Change, ChangeSet, EndUser, GraphEntity, GraphTriple

Table = Change.Table


def join(pair: Pair, changes: Changes) -> None:
    """Move the triples, after the facts that they follow; counts them."""
    theirs = GraphTriple.objects.filter(end_user=pair.merged)
    twins = GraphTriple.objects.filter(
        end_user=pair.survivor,
        agent_id=OuterRef("agent_id"),
        subject__digest=OuterRef("subject__digest"),
        predicate=OuterRef("predicate"),
        object__digest=OuterRef("object__digest"),
        fact=None,
        valid_to=None,
    ).exclude(status="trashed")
    stays = Q(fact=None, valid_to=None) & ~Q(status="trashed") & Exists(twins)
    triples = list(theirs.exclude(stays).order_by("pk"))
    if triples:
        _give(triples, to=pair.survivor, changes=changes)
        changes.counts["triples"] = changes.move(Table.TRIPLE, [triple.pk for triple in triples])


def separate(pair: Pair, done: ChangeSet, changes: Changes) -> None:
    """Undo join(): what moved goes back, and triples of facts to whoever has the fact by now."""
    came = Q(pk__in=moved(done, Table.TRIPLE), fact=None) | (Q(fact__end_user=pair.merged))
    triples = list(GraphTriple.objects.filter(came, end_user=pair.survivor).order_by("pk"))
    _give(triples, to=pair.merged, changes=changes)


def _give(triples: Sequence[GraphTriple], *, to: EndUser, changes: Changes) -> None:
    """Let these triples of one person be about entities of the other, who has the same other names of them."""
    ids = {pk for triple in triples for pk in (triple.subject_id, triple.object_id)}
    entities = GraphEntity.objects.select_related("merged_into").in_bulk(ids)
    names = [one.name for entity in entities.values() for one in (entity, entity.merged_into) if one]
    theirs = naming.ensure(to.tenant_id, to.pk, names, now=changes.now)
    for entity in entities.values():
        other = theirs[bytes(entity.digest)]
        root = theirs[bytes(entity.merged_into.digest)] if entity.merged_into else None
        if root and root.merged_into_id is None and not other.aliases.exists() and other.pk != root.pk:
            other.merged_into = root
        other.type = other.type or entity.type
        other.save(update_fields=["merged_into", "type"])
    for triple in triples:
        triple.end_user = to
        triple.subject = theirs[bytes(entities[triple.subject_id].digest)]
        triple.object = theirs[bytes(entities[triple.object_id].digest)]
    GraphTriple.objects.bulk_update(triples, ["end_user", "subject", "object"], batch_size=500)
    for person in {entity.end_user_id for entity in entities.values()}:
        naming.delete_unused(person, ids)
