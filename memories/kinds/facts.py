"""Facts: what the hub believes of a person, one statement each."""

from django.utils.translation import gettext_lazy as _

from memories.kinds.kind import Embedded, Kind, Served
from memories.models import Fact, FactVector

FACT = Kind(
    "fact",
    "facts",
    Fact,
    served=Served(1, of_others=True),
    embedded=Embedded(1, FactVector, "fact", ("content",), _("Vectors of statements"), text="content"),
    is_purged=True,
)
