"""Vectors in the background: one batch of what has none, for whoever embeds."""

import uuid
from collections.abc import Collection
from typing import Any

from django.db.models import F, Subquery

from memories.exceptions import EmbeddingError
from memories.models import EmbeddingSpace, EndUser, Session, Turn
from memories.pipeline import memory_vectors, spaces, turn_vectors
from memories.pipeline.embedding import Round
from memories.pipeline.memory_vectors import KINDS, Kind


def embed_some(*, passing_over: Collection[uuid.UUID] = ()) -> Round:
    """Embed at most a batch of facts, one of episodes and one of turns. One statement when there is nothing to do.

    A failing endpoint is paused for everybody and named in `failure`; before there is a space, nothing notes the
    pause and EmbeddingError is raised. `passing_over` are sessions to leave alone.
    """
    done = Round()
    space, has_turns, kinds = _look()
    if space is None:
        _make_space(done)
    elif (has_turns or kinds) and spaces.can_embed(space):
        try:
            for kind in kinds:
                memory_vectors.embed_changed(kind, space, done)
            if has_turns:
                turn_vectors.embed_turns(space, done, passing_over)
        except EmbeddingError as error:
            spaces.note_failure(space, error)
            done.failure = error.code
    return done


def pending_texts(person: EndUser) -> int:
    """How many of the person's texts have yet to get a vector in the serving space."""
    turns = Turn.objects.filter(end_user=person, number__gt=F("session__embedded_number")).searchable()
    memories: list[int] = [kind.rows.objects.of(person.tenant, person).unembedded().count() for kind in KINDS]
    return turns.count() + sum(memories)


def _look() -> tuple[EmbeddingSpace | None, bool, list[Kind]]:
    """The serving space, whether turns wait, and the kinds of memories that do; in one statement."""
    # In order, and so by the partial indexes: for EXISTS alone the planner would read whole tables to find nothing.
    turns = Subquery(Session.objects.unembedded().order_by("-last_turn_at").values("pk")[:1])
    waiting = {
        f"a_{kind.name}": Subquery(kind.rows.objects.unembedded().order_by("-updated_at").values("pk")[:1])
        for kind in KINDS
    }
    row: Any = EmbeddingSpace.objects.serving().with_clock().annotate(a_session=turns, **waiting).first()
    if row is None:
        return None, False, []
    return row, bool(row.a_session), [kind for kind in KINDS if getattr(row, f"a_{kind.name}")]


def _make_space(done: Round) -> None:
    """Only once there is something to embed: the configured model may change until then."""
    if Session.objects.unembedded().exists() or any(kind.rows.objects.unembedded().exists() for kind in KINDS):
        spaces.first_space()
        done.moved = 1
