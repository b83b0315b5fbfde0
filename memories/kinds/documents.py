"""Documents: what files say that came with turns, passage by passage."""

from django.utils.translation import gettext_lazy as _

from memories.kinds.kind import Embedded, Kind, Served
from memories.models import Passage, PassageVector

DOCUMENT = Kind(
    "document",
    "passages",
    Passage,
    served=Served(9),
    embedded=Embedded(4, PassageVector, "passage", ("place", "content"), _("Vectors of files"), since="created_at"),
)
