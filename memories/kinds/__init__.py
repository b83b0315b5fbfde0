"""What the hub remembers: KINDS is the only list of kinds, and each module beside this one declares one of them.

Whatever treats kinds alike goes by it (docs/decisions/0028-columns-and-kinds.md). In: models. Out: nothing is written.
"""

from memories.kinds.diary import DIARY
from memories.kinds.documents import DOCUMENT
from memories.kinds.episodes import EPISODE
from memories.kinds.facts import FACT
from memories.kinds.files import FILE
from memories.kinds.group_facts import GROUP_FACT
from memories.kinds.kind import Kind, in_order
from memories.kinds.profile import PROFILE
from memories.kinds.triples import TRIPLE
from memories.kinds.turns import TURN

KINDS: tuple[Kind, ...] = (FACT, EPISODE, PROFILE, FILE, DIARY, TRIPLE, GROUP_FACT, TURN, DOCUMENT)
EMBEDDED = in_order(KINDS, "embedded")
PLAIN = tuple(kind for kind in KINDS if kind.plain)

__all__ = ["EMBEDDED", "KINDS", "PLAIN", "Kind"]
