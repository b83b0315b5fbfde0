"""Stores of what the hub made of what was said: facts, episodes, the profile, and the questions about them.

In the order in which they go: what hangs on a row goes before it.
"""

from memories.privacy.stores.keeping import Store

VECTORS = (
    Store("memories.TurnVector", "end_user", ("language", "vector")),
    Store("memories.FactVector", "end_user", ("language", "vector", "text_digest")),
    Store("memories.EpisodeVector", "end_user", ("language", "vector", "text_digest")),
)
QUESTIONS = (
    Store("memories.BatchEntry", "fact__end_user", (), also=("item__end_user",)),
    Store(
        "memories.ReviewItem",
        "end_user",
        ("note", "traces"),
        also=("fact__end_user", "known__end_user", "proposed_section__end_user", "episode__end_user"),
    ),
)
FACTS = (
    Store("memories.FactEvidence", "fact__end_user", ("quote",), also=("session__end_user",)),
    Store("memories.FactRevision", "fact__end_user", ("before", "after", "reason")),
    Store("memories.FactRelation", "fact__end_user", (), also=("target__end_user",)),
    Store("memories.FactMerge", "survivor__end_user", ("traces",)),
    Store("memories.FactRefusal", "end_user", ("digest",)),
    Store(
        "memories.Fact",
        "end_user",
        ("content", "content_hash", "terms", "raw", "structured", "key", "value", "tags", "source_error", "agent_id",
         "allowed_users", "allowed_roles", "embedded_hash"),
        loosens=(("memories.Fact", "superseded_by"), ("memories.FactRefusal", "fact")),
    ),
)  # fmt: skip
PROFILE = (
    Store("memories.ProfileSection", "end_user", ("summary",)),
    Store("memories.ProfileRevision", "end_user", ("before", "after", "reason")),
)
EPISODES = (
    Store(
        "memories.Episode",
        "end_user",
        ("summary", "key_topics", "actions_taken", "outcomes", "content_hash", "terms", "embedded_hash"),
    ),
)
