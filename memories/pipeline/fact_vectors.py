"""A batch of facts to vectors; a fact whose text changed meanwhile waits for the next one."""

from collections.abc import Sequence

from django.db import transaction
from django.db.models import F, QuerySet

from memories.llm.embeddings import BATCH
from memories.models import EmbeddingSpace, Fact, FactVector
from memories.pipeline import spaces
from memories.pipeline.embedding import Round, Text, Vectors, embed_each, quick_commit, storable
from memories.scoring import language


def embed_facts(space: EmbeddingSpace, done: Round) -> None:
    """Embed a batch of the facts that changed last. Errors: EmbeddingError of the endpoint, with nothing written."""
    facts = list(with_text(Fact.objects.unembedded()).order_by("-updated_at")[:BATCH])
    vectors = embed_each(space, [text_of(fact) for fact in facts])
    with transaction.atomic():
        quick_commit()
        if spaces.may_write(space):
            same = unchanged(facts)
            write(space, same, vectors)
            Fact.objects.filter(pk__in=[fact.pk for fact in same]).update(embedded_hash=F("content_hash"))
            done.moved += len(same)
            done.count(space, [vectors[fact.pk] for fact in same])


def with_text(facts: QuerySet[Fact]) -> QuerySet[Fact]:
    """As much of facts as is embedded and written."""
    return facts.select_related("end_user").only(
        "content", "content_hash", "tenant", "end_user", "end_user__generation"
    )


def text_of(fact: Fact) -> Text:
    return Text(fact.pk, fact.end_user_id, fact.content)


def unchanged(facts: Sequence[Fact]) -> list[Fact]:
    """Those that still have their text, of persons that were not erased; locked. One that somebody holds has not."""
    rows = with_text(Fact.objects.filter(pk__in=[fact.pk for fact in facts])).order_by()
    locked = rows.select_for_update(of=("self",), skip_locked=True, no_key=True)
    now = {fact.pk: _version(fact) for fact in locked}
    return [fact for fact in facts if now.get(fact.pk) == _version(fact)]


def write(space: EmbeddingSpace, facts: Sequence[Fact], vectors: Vectors) -> None:
    """Write the vectors of facts, in the place of older ones; the old one of a fact that has none now goes."""
    rows = [
        FactVector(
            fact_id=fact.pk,
            space=space,
            tenant_id=fact.tenant_id,
            end_user_id=fact.end_user_id,
            text_digest=fact.content_hash,
            language=language.of(fact.content),
            vector=storable(vector),
        )
        for fact in facts
        if (vector := vectors[fact.pk]) is not None
    ]
    FactVector.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["fact", "space"],
        update_fields=["text_digest", "language", "vector"],
    )
    refused = [fact.pk for fact in facts if vectors[fact.pk] is None]
    if refused:
        FactVector.objects.filter(space=space, fact__in=refused).delete()


def _version(fact: Fact) -> tuple[bytes, int]:
    return bytes(fact.content_hash), fact.end_user.generation
