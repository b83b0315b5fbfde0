"""Reading a session's turns in order, a page at a time: the reader stops at its bound, and there may be 10,000."""

from collections.abc import Iterator

from django.db.models import QuerySet

from memories.models import Role, Session, Turn
from memories.pipeline.feed import FedTurn, fed

_PAGE = 200


def fed_turns(session: Session, *, after: int, last: int) -> Iterator[FedTurn]:
    """Fed turns beyond `after` up to `last`; read from the user turn before them, so that a late reply knows what it
    answers."""
    turns = Turn.objects.filter(session=session)
    asked = turns.filter(number__lte=after, role=Role.USER).exclude(metadata__hide_from_ui=True).order_by("-number")
    start = asked.values_list("number", flat=True).first() or after
    spoken = turns.filter(number__lte=last, role__in=[Role.USER, Role.ASSISTANT])
    spoken = spoken.only("number", "role", "content", "tool_calls", "metadata", "timestamp", "created_at")
    return (turn for turn in fed(paged(spoken, after=start - 1)) if turn.number > after)


def paged(turns: QuerySet[Turn], *, after: int) -> Iterator[Turn]:
    """Those of `turns` beyond the number `after`."""
    while page := list(turns.filter(number__gt=after).order_by("number")[:_PAGE]):
        yield from page
        after = page[-1].number
