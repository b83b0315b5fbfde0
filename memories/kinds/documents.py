"""Documents: what files say that came with turns, passage by passage."""

from memories.kinds.kind import Embedded, Kind
from memories.models import Passage, PassageVector

DOCUMENT = Kind(
    "document",
    "passages",
    Passage,
    embedded=Embedded(4, PassageVector, "passage", ("place", "content"), since="created_at"),
)
