"""Branches of a conversation: the turns of one that the client left stay stored and are told nowhere, until the client
goes on with them.

What the person said on them is extracted all the same, and what was made of it stays: facts, sections of the profile.
A running summary that may tell them is made anew, for it says what the conversation is about now.
"""

from collections.abc import Sequence

from memories import conf
from memories.models import Session, Turn, TurnVector, WorkingMemory
from memories.queue import queue_rows, session_queue, window_queue
from memories.scoring import terms


def change(session: Session, *, left: Sequence[Turn], back: Sequence[Turn]) -> None:
    """Leave these turns of the session, and take those back.

    The caller holds the locks of session_rows.locked_queue(). What is in flight and may have read them is thrown away:
    its worker finds that at its commit.
    """
    if not (left or back):
        return
    queue = session.queue
    hidden = [turn.pk for turn in left]
    Turn.objects.filter(pk__in=hidden).update(left_at=queue.clock, terms=None)
    TurnVector.objects.filter(turn__in=hidden).delete()
    _show_again(back, session)
    first = min(turn.number for turn in (*left, *back))
    session.redactions += 1
    session.save(update_fields=["redactions", "embedded_number"])
    rules = conf.rules(session.tenant)
    if any(turn.number > queue.extracted_number for turn in (*left, *back)):
        if queue.lease_token:
            queue_rows.release(queue)
        session_queue.recount(queue, rules=rules, now=queue.clock)
        queue.save()
    window = WorkingMemory.objects.get(pk=session.pk)
    window_queue.read_again(window, session, first_number=first, rules=rules, now=queue.clock)
    window.save()
    # What is armed next goes on from here.
    session.working_memory = window


def _show_again(turns: Sequence[Turn], session: Session) -> None:
    """The embedder goes back to them; vectors that are there stay."""
    stored = list(Turn.objects.filter(pk__in=[turn.pk for turn in turns]))
    for turn in stored:
        turn.left_at = None
        turn.terms = terms.pack(turn.own_text) if turn.is_searchable else None
    Turn.objects.bulk_update(stored, ["left_at", "terms"])
    first = min((turn.number for turn in stored if turn.is_searchable), default=session.turn_count + 1)
    session.embedded_number = min(session.embedded_number, first - 1)
