"""Stores of what was said, and of who said it; in the order in which they go."""

from memories.privacy.stores.keeping import Store

_OF_A_RUN = ("memories.Fact", "memories.ReviewItem", "memories.ProfileSection", "memories.ProfileRevision")

TALK = (
    Store("memories.ExtractionRun", "end_user", (), loosens=tuple((label, "extraction") for label in _OF_A_RUN)),
    Store(
        "memories.Turn",
        "end_user",
        ("content", "parts", "name", "tool_calls", "tool_call_id", "metadata", "external_id", "terms"),
    ),
    Store("memories.WorkingMemory", "session__end_user", ("summary",)),
    Store("memories.SessionQueue", "session__end_user", ("signals",)),
    Store("memories.Session", "end_user", ("external_id", "agent_id")),
)
MERGES = (
    Store("memories.MergeEntry", "merge__survivor", (), also=("merge__merged",)),
    Store("memories.PersonMerge", "survivor", (), also=("merged",)),
)
# Last of all, in the transaction that leaves tombstones.
PEOPLE = Store(
    "memories.EndUser",
    "pk",
    ("external_id", "display_name", "time_zone", "language", "metadata"),
    # A case outlives its person, as codes and times; an access case goes on and finds nothing.
    loosens=(("memories.PrivacyCase", "end_user"),),
)
