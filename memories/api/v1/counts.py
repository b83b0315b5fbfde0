"""How much there is of a person, and how much of it still waits."""

from itertools import groupby

from django.db.models import F, Q

from memories.models import EndUser, Episode, EpisodeStatus, Fact, Status, Turn
from memories.pipeline import vectors
from memories.pipeline.feed import fed


def counts_of(person: EndUser) -> dict[str, int]:
    """Rows of each kind; of facts and episodes the active ones."""
    facts = Fact.objects.of(person.tenant, person)
    return {
        "sessions": person.sessions.count(),
        "turns": person.turns.count(),
        "facts": facts.filter(status=Status.ACTIVE).count(),
        "episodes": Episode.objects.of(person.tenant, person).filter(status=EpisodeStatus.ACTIVE).count(),
    }


def pending_of(person: EndUser) -> dict[str, int]:
    """Turns beyond the watermark that extraction will be shown, and texts without a vector; 0 when nothing is left."""
    waiting = Q(session__queue__due_at__isnull=False) | Q(session__queue__parked_at__isnull=False)
    beyond = Turn.objects.filter(waiting, end_user=person, number__gt=F("session__queue__extracted_number"))
    turns = beyond.order_by("session", "number").defer("parts")
    fed_turns = sum(1 for _, own in groupby(turns, key=lambda turn: turn.session_id) for _ in fed(own))
    return {"extraction": fed_turns, "embedding": vectors.pending_texts(person)}
