"""Facts of groups: what the members' agents share. They go with their group, so the nightly pass locks that."""

from memories.kinds.kind import Kind, Served
from memories.models import GroupFact

GROUP_FACT = Kind(
    "group_fact",
    "group_facts",
    GroupFact,
    served=Served(4, owner="about", said_by="evidence__end_user", of_others=True),
)
