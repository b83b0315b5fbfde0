"""The diary of an agent: what it notes for itself about a person."""

from memories.kinds.kind import Embedded, Kind, Served
from memories.models import DiaryEntry, DiaryVector

DIARY = Kind(
    "diary",
    "diary",
    DiaryEntry,
    served=Served(6),
    embedded=Embedded(3, DiaryVector, "entry", ("topic", "content"), since="created_at"),
    is_purged=True,
)
