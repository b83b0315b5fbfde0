"""Episodes: what was talked about in a part of a session."""

from memories.kinds.kind import Embedded, Kind, Served
from memories.models import Episode, EpisodeVector

EPISODE = Kind(
    "episode",
    "episodes",
    Episode,
    served=Served(7),
    embedded=Embedded(2, EpisodeVector, "episode", ("summary", "key_topics", "actions_taken", "outcomes")),
    is_purged=True,
)
