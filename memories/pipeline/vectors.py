"""Vectors in the background: one batch of what has none, for whoever embeds."""

import uuid
from collections.abc import Collection
from typing import Any

from django.db.models import F, Subquery

from memories.exceptions import EmbeddingError
from memories.models import EmbeddingSpace, EndUser, Fact, Session, Turn
from memories.pipeline import fact_vectors, spaces, turn_vectors
from memories.pipeline.embedding import Round


def embed_some(*, passing_over: Collection[uuid.UUID] = ()) -> Round:
    """Embed at most a batch of facts and one of turns. One statement when there is nothing to do.

    A failing endpoint is paused for everybody and named in `failure`; before there is a space, nothing notes the
    pause and EmbeddingError is raised. `passing_over` are sessions to leave alone.
    """
    done = Round()
    space, has_turns, has_facts = _look()
    if space is None:
        _make_space(done)
    elif (has_turns or has_facts) and spaces.can_embed(space):
        try:
            if has_facts:
                fact_vectors.embed_facts(space, done)
            if has_turns:
                turn_vectors.embed_turns(space, done, passing_over)
        except EmbeddingError as error:
            spaces.note_failure(space, error)
            done.failure = error.code
    return done


def pending_texts(person: EndUser) -> int:
    """How many of the person's texts have yet to get a vector in the serving space."""
    turns = Turn.objects.filter(end_user=person, number__gt=F("session__embedded_number")).searchable()
    return turns.count() + Fact.objects.of(person.tenant, person).unembedded().count()


def _look() -> tuple[EmbeddingSpace | None, bool, bool]:
    """The serving space, and whether turns and facts wait; in one statement."""
    # In order, and so by the partial indexes: for EXISTS alone the planner would read whole tables to find nothing.
    turns = Subquery(Session.objects.unembedded().order_by("-last_turn_at").values("pk")[:1])
    facts = Subquery(Fact.objects.unembedded().order_by("-updated_at").values("pk")[:1])
    row: Any = EmbeddingSpace.objects.serving().with_clock().annotate(a_session=turns, a_fact=facts).first()
    return (row, bool(row.a_session), bool(row.a_fact)) if row else (None, False, False)


def _make_space(done: Round) -> None:
    """Only once there is something to embed: the configured model may change until then."""
    if Session.objects.unembedded().exists() or Fact.objects.unembedded().exists():
        spaces.first_space()
        done.moved = 1
