"""Judges stored turns without a verdict, in the background: those of an older hub, and those beyond a batch's bound.

The pass goes by id, and so by time. Where it is only its process knows: after a restart it looks at all turns again,
which costs little where their verdicts are written.
"""

import time
import uuid

from django.db import transaction

from memories.embedding.batching import quick_commit
from memories.llm.embeddings import BATCH
from memories.models import Turn
from memories.text.injection import flagged_turns

# Younger turns are for the embedder, which judges what it embeds.
SETTLED_SECONDS = 3_600
# Turns of a step; at most BATCH of them are judged.
LOOKED_AT = 1_000
FIRST = uuid.UUID(int=0)


def judge_some(after: uuid.UUID = FIRST) -> uuid.UUID | None:
    """Judge the next turns beyond the id `after`; returns up to where it is done, None when there are no more."""
    settled = uuid.UUID(int=(time.time_ns() // 1_000_000 - SETTLED_SECONDS * 1_000) << 80)
    rows = Turn.objects.filter(pk__gt=after, pk__lt=settled).order_by("pk").values_list("pk", "role", "flagged")
    looked_at = list(rows[:LOOKED_AT])
    unjudged = [pk for pk, role, flagged in looked_at if flagged is None and role in flagged_turns.JUDGED]
    if not unjudged:
        return looked_at[-1][0] if looked_at else None
    texts = dict(Turn.objects.filter(pk__in=unjudged[:BATCH]).values_list("pk", "content"))
    found = dict(zip(texts, flagged_turns.verdicts(list(texts.values())), strict=True))
    verdicts = {pk: verdict for pk, verdict in found.items() if verdict is not None}
    _write(verdicts)
    # Up to the first that has no verdict yet; one that was deleted meanwhile needs none.
    left = [pk for pk in unjudged if pk not in verdicts and (pk in texts or pk in unjudged[BATCH:])]
    done = [pk for pk, _, _ in looked_at if not left or pk < left[0]]
    return done[-1] if done else after


def _write(verdicts: dict[uuid.UUID, bool]) -> None:
    """A verdict that is there stays. Whoever has a turn locked deletes it, as a rule: it is left out."""
    with transaction.atomic():
        quick_commit()
        free = Turn.objects.filter(pk__in=verdicts).order_by().select_for_update(skip_locked=True, no_key=True)
        held = list(free.values_list("pk", flat=True))
        for flagged in (False, True):
            judged = [pk for pk in held if verdicts[pk] is flagged]
            Turn.objects.filter(pk__in=judged, flagged=None).update(flagged=flagged)
