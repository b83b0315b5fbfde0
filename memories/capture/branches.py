"""Branches of a conversation: the turns of one that the client left stay stored and are used for nothing, until the
client goes on with them.

What was made of them stays, as the person said it: facts, sections of the profile, episodes. A running summary that may
tell them is made anew, for it says what the conversation is about now.
"""

from collections.abc import Iterable, Sequence

from django.db.models import Exists, OuterRef

from memories import conf
from memories.models import ExtractionRun, Role, Session, Turn, TurnVector, WorkingMemory
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
    _leave(left, session)
    _take_back(back, session)
    first = min(turn.number for turn in (*left, *back))
    session.redactions += 1
    session.save(update_fields=["redactions", "embedded_number"])
    rules = conf.rules(session.tenant)
    if any(turn.number > queue.extracted_number for turn in (*left, *back)):
        if queue.lease_token:
            queue_rows.give_back(queue)
        session_queue.recount(queue, rules=rules, now=queue.clock)
        queue.save()
    window = WorkingMemory.objects.get(pk=session.pk)
    window_queue.read_again(window, session, first_number=first, rules=rules, now=queue.clock)
    window.save()
    # What is armed next goes on from here.
    session.working_memory = window


def _leave(turns: Sequence[Turn], session: Session) -> None:
    ids = [turn.pk for turn in turns]
    Turn.objects.filter(pk__in=ids).update(left_at=session.queue.clock, terms=None)
    TurnVector.objects.filter(turn__in=ids).delete()


def _take_back(turns: Sequence[Turn], session: Session) -> None:
    """The embedder goes back to them; vectors that are there stay."""
    stored = list(Turn.objects.filter(pk__in=[turn.pk for turn in turns]))
    for turn in stored:
        turn.left_at = None
        turn.terms = terms.pack(turn.content) if turn.is_searchable else None
    Turn.objects.bulk_update(stored, ["left_at", "terms"])
    first = min((turn.number for turn in stored if turn.is_searchable), default=session.turn_count + 1)
    session.embedded_number = min(session.embedded_number, first - 1)


def unread(session: Session, turns: Iterable[Turn]) -> set[int]:
    """The numbers of those user turns that extraction passed over because they were left: it does not go back to them,
    so they are stored anew if the client goes on with them."""
    passed = [turn for turn in turns if turn.left_at and turn.role == Role.USER]
    passed = [turn for turn in passed if session.deleted_runs_number < turn.number <= session.queue.extracted_number]
    if not passed:
        return set()
    numbers = [turn.number for turn in passed]
    # The run that read it was committed before it was left: later ones do not read it.
    reading = ExtractionRun.objects.filter(
        session=session,
        status=ExtractionRun.RunStatus.COMMITTED,
        first_number__lte=OuterRef("number"),
        last_number__gte=OuterRef("number"),
        finished_at__lte=OuterRef("left_at"),
    )
    turns = Turn.objects.filter(~Exists(reading), session=session, number__in=numbers)
    return set(turns.values_list("number", flat=True))
