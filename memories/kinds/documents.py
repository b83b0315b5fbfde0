"""Documents: what files say that came with turns, passage by passage."""

from memories.kinds.kind import Embedded, Kind, Served
from memories.models import Passage, PassageVector

DOCUMENT = Kind(
    "document",
    "passages",
    Passage,
    served=Served(9),
    embedded=Embedded(4, PassageVector, "passage", ("place", "content"), since="created_at"),
)
