"""Episodes: what was talked about in a part of a session."""

from django.utils.translation import gettext_lazy as _

from memories.kinds.kind import Embedded, Kind, Served
from memories.models import Episode, EpisodeVector
from memories.models.memories.episodes import TEXTS

EPISODE = Kind(
    "episode",
    "episodes",
    Episode,
    served=Served(7),
    embedded=Embedded(2, EpisodeVector, "episode", TEXTS, _("Vectors of episodes")),
    is_purged=True,
)
