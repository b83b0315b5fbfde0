"""Reads a session's turns in order, page by page: there may be 10,000, and the reader stops at its bound."""

import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from memories.models import EndUser, Role, Session, Turn
from memories.telemetry import traces
from memories.text.transcript import TranscriptTurn, fed

PAGE = 200
READ = (
    "number", "role", "author", "name", "content", "own", "is_doubtful", "tool_calls", "metadata", "flagged",
    "timestamp", "created_at",
)  # fmt: skip
# Posts that a span links to: the SDK keeps no more.
_MOST_POSTS = 128


def fed_turns(session: Session, *, after: int, last: int, with_left: bool = False) -> Iterator[TranscriptTurn]:
    """Fed turns beyond `after` up to `last`; `with_left`: also what the person said on branches that were left.
    Their times are in the person's zone.

    It reads from the user turn before them on, as a late reply needs the question that it answers.
    """
    turns = Turn.objects.filter(session=session)
    turns = turns.readable() if with_left else turns.current()
    questions = turns.said().filter(number__lte=after).exclude(metadata__hide_from_ui=True).order_by("-number")
    start = questions.values_list("number", flat=True).first() or after
    spoken = turns.filter(number__lte=last, role__in=[Role.USER, Role.ASSISTANT])
    spoken = spoken.only(*READ)
    local = (_local(turn, session.end_user) for turn in paged(spoken, after=start - 1))
    return (turn for turn in fed(local) if turn.number > after)


def _local(turn: Turn, person: EndUser) -> Turn:
    """The same moments. Prompts show them, and the gate counts days from them."""
    turn.created_at = person.local(turn.created_at)
    turn.timestamp = person.local(turn.timestamp) if turn.timestamp else None
    return turn


def paged(turns: QuerySet[Turn], *, after: int) -> Iterator[Turn]:
    """Those of `turns` beyond the number `after`."""
    while page := list(turns.filter(number__gt=after).order_by("number")[:PAGE]):
        yield from page
        after = page[-1].number


def traced(name: str, session: Session, numbers: tuple[int, int], **attributes: Any) -> AbstractContextManager[Any]:
    """Work on the turns from the first to the last of `numbers`, in the trace that the first of their posts began.

    Turns of one post have one time.
    """
    if not traces.is_on():
        return nullcontext()
    turns = Turn.objects.filter(session=session, number__range=numbers)
    posts: dict[datetime, uuid.UUID] = {}
    for at, pk in turns.order_by("number").values_list("created_at", "pk").iterator():
        posts.setdefault(at, pk)
        if len(posts) == _MOST_POSTS:
            break
    tagged = {"session": str(session.pk), "tenant": session.tenant.slug, **attributes}
    return traces.work_span(name, list(posts.values()), **tagged)
