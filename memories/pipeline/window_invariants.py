"""What must be true of working memories and episodes at every moment: part of `invariants`."""

import uuid
from collections.abc import Iterator

from django.db.models import Count, Exists, F, OuterRef

from memories.models import Episode, Role, Turn, WorkingMemory
from memories.pipeline.feed import fed

WINDOWS = """
    SELECT s.id FROM memories_session s
    LEFT JOIN memories_workingmemory w ON w.session_id = s.id
    LEFT JOIN LATERAL (
        SELECT count(*) FILTER (WHERE t.role = 'user') AS rounds,
            coalesce(sum(t.token_count) FILTER (WHERE t.number <= w.left_number), 0) AS left_tokens,
            count(*) FILTER (WHERE t.role = 'user' AND t.number <= w.left_number) AS left_rounds
        FROM memories_turn t WHERE t.session_id = s.id
    ) t ON true
    WHERE w.session_id IS NULL OR t.rounds + s.deleted_rounds <> s.round_count OR w.left_number > s.turn_count
        OR t.left_tokens + s.deleted_tokens <> w.left_tokens
        OR t.left_rounds + s.deleted_rounds <> w.left_rounds OR w.left_number < s.deleted_number
"""
EPISODE_OVERLAPS = """
    SELECT id FROM (
        SELECT id, first_number, max(last_number) OVER (
            PARTITION BY session_id ORDER BY first_number, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS covered
        FROM memories_episode
    ) e WHERE covered >= first_number
"""
EPISODES_BEYOND = """
    SELECT e.id FROM memories_episode e
    JOIN memories_workingmemory w ON w.session_id = e.session_id JOIN memories_session s ON s.id = e.session_id
    WHERE e.last_number > w.episode_number OR w.episode_number > s.turn_count
"""


def untold() -> Iterator[uuid.UUID]:
    """Sessions with a user turn that was fed, is marked as summed up and is in no episode.

    Where an episode was deleted for good nobody can tell any more.
    """
    whole = WorkingMemory.objects.annotate(kept=Count("session__episodes")).filter(kept=F("episodes_made"))
    telling = Episode.objects.filter(
        session=OuterRef("session"), first_number__lte=OuterRef("number"), last_number__gte=OuterRef("number")
    )
    passed = Turn.objects.filter(
        ~Exists(telling), role=Role.USER, number__lte=F("session__working_memory__episode_number")
    )
    last = None
    for turn in passed.filter(session__in=whole.values("pk")).order_by("session", "number").iterator():
        if turn.session_id != last and any(fed([turn])):
            last = turn.session_id
            yield last
