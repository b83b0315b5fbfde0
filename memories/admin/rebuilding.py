"""How far a change of the embedding model has come, while `manage.py reembed` is at it."""

from dataclasses import dataclass

from django.db.models import Model

from memories.models import EmbeddingSpace, EpisodeVector, FactVector, TurnVector

State = EmbeddingSpace.State
VECTORS: tuple[type[Model], ...] = (TurnVector, FactVector, EpisodeVector)


@dataclass(frozen=True)
class Rebuilding:
    """The model that is to serve next, how many texts it has, and how many the one that serves has."""

    model: str
    done: int
    texts: int


def rebuilding() -> Rebuilding | None:
    """None when no other model is on its way; one query then, since counting all vectors takes a while."""
    spaces = {space.state: space for space in EmbeddingSpace.objects.exclude(state=State.RETIRED)}
    building, serving = spaces.get(State.BUILDING), spaces.get(State.SERVING)
    if building is None:
        return None
    done = _vectors_of(building)
    # What the new one has is never more than all, though texts go meanwhile.
    return Rebuilding(building.model, done, max(done, _vectors_of(serving) if serving else 0))


def _vectors_of(space: EmbeddingSpace) -> int:
    return sum(kind._default_manager.filter(space=space).count() for kind in VECTORS)
