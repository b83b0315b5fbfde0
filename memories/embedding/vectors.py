"""One round of the embedder: a batch of the memories of each kind, items and turns that have no vector."""

import uuid
from collections.abc import Collection
from typing import Any

from django.db.models import F, Subquery

from memories.embedding import memory_vectors, spaces, store_vectors, turn_vectors
from memories.embedding.batching import Round
from memories.exceptions import EmbeddingError
from memories.kinds import EMBEDDED
from memories.models import EmbeddingSpace, EndUser, Session, StoreItem, Turn


def embed_some(*, passing_over: Collection[uuid.UUID] = ()) -> Round:
    """Embed at most a batch of the memories of each kind, one of items and one of turns. One statement when there is
    nothing to do.

    When the endpoint fails, all embedders pause and `failure` names the error. Before the first space nothing can store
    the pause, so EmbeddingError is raised. `passing_over` are sessions to leave alone.
    """
    done = Round()
    # In order, and so by the partial indexes: for EXISTS alone the planner would read whole tables to find nothing.
    a_session = Subquery(Session.objects.unembedded().order_by("-last_turn_at").values("pk")[:1])
    memories = {f"a_{kind.name}": Subquery(memory_vectors.waiting(kind).values("pk")[:1]) for kind in EMBEDDED}
    # Of all tenants: found by its partial index, which is nearly empty.
    memories["an_item"] = Subquery(StoreItem.objects.unembedded().order_by("tenant", "-updated_at").values("pk")[:1])
    space: Any = EmbeddingSpace.objects.serving().with_clock().annotate(a_session=a_session, **memories).first()
    if space is None:
        # Made when there is something to embed: until then the configured model may change.
        waiting = (Session.objects, StoreItem.objects, *(kind.rows for kind in EMBEDDED))
        if any(rows.unembedded().exists() for rows in waiting):
            spaces.first_space()
            done.moved = 1
        return done
    kinds = [kind for kind in EMBEDDED if getattr(space, f"a_{kind.name}")]
    if (space.a_session or space.an_item or kinds) and spaces.can_embed(space):
        try:
            for kind in kinds:
                memory_vectors.embed_changed(kind, space, done)
            if space.an_item:
                store_vectors.embed_changed(space, done)
            if space.a_session:
                turn_vectors.embed_turns(space, done, passing_over)
        except EmbeddingError as error:
            spaces.note_failure(space, error)
            done.failure = error.code
    return done


def pending_texts(person: EndUser) -> int:
    """How many of the person's texts wait for a vector in the serving space."""
    # Not of all turns of the person: most sessions have none that wait.
    sessions = Session.objects.filter(end_user=person).unembedded()
    turns = Turn.objects.filter(session__in=sessions, number__gt=F("session__embedded_number")).searchable()
    items = StoreItem.objects.filter(end_user__in=EndUser.objects.with_aliases(person).values("pk")).unembedded()
    memories: list[int] = [kind.rows.of(person.tenant, person).unembedded().count() for kind in EMBEDDED]
    return turns.count() + items.count() + sum(memories)
