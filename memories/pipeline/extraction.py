"""What one model call is to read: a bounded batch of a session's new turns, and what is already known."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.db.models import Max, QuerySet

from memories.llm.prompts import memory_update
from memories.llm.prompts.framing import Message
from memories.llm.prompts.memory_update import KnownFact, TurnInput
from memories.models import EndUser, Fact, ProfileSection, Role, Turn
from memories.pipeline import signal_phrases
from memories.pipeline.batches import Batch, ShownFact, bounded
from memories.pipeline.debounce import Claim
from memories.pipeline.feed import FedTurn, fed

_PAGE = 200


def gather(*, claim: Claim, now: datetime) -> Batch:
    """The next batch of the claimed session; its turns' text, shortened as the prompt shows it, is bounded by tokens.

    It holds at least one fed turn and ends with a round where it can; turns that arrive later are not in it.
    """
    first = claim.extracted_number + 1
    last = _turns(claim).aggregate(last=Max("number"))["last"] or claim.extracted_number
    turns, is_rest = bounded(_fed(claim, last), claim.rules.batch_tokens, claim.batch_limit)
    if turns and not is_rest:
        last = turns[-1].number
    if not any(turn.is_user for turn in turns):
        return Batch(first_number=first, last_number=last)
    facts = _known_facts(claim, now=now)
    profile = _profile(claim)
    return Batch(
        first_number=first,
        last_number=last,
        turns=turns,
        tool_turns=dict(_turns(claim).filter(number__range=(first, last), role=Role.TOOL).values_list("number", "pk")),
        shown_facts=tuple(ShownFact(fact.pk, bytes(fact.content_hash)) for fact in facts),
        shown_profile={row.section: row.version for row in profile},
        messages=_messages(claim, turns, facts, profile, now=now),
        patterns=signal_phrases.patterns_of(claim.session.tenant.signal_phrases),
    )


def _turns(claim: Claim) -> QuerySet[Turn]:
    return Turn.objects.filter(session=claim.session).after(claim.extracted_number)


def _fed(claim: Claim, last: int) -> Iterator[FedTurn]:
    """Fed turns beyond the watermark; read from the user turn before it, so that a late reply knows what it answers."""
    session_turns = Turn.objects.filter(session=claim.session)
    asked = session_turns.filter(number__lte=claim.extracted_number, role=Role.USER)
    asked = asked.exclude(metadata__hide_from_ui=True).order_by("-number")
    start = asked.values_list("number", flat=True).first() or claim.extracted_number
    spoken = session_turns.filter(number__lte=last, role__in=[Role.USER, Role.ASSISTANT])
    return (turn for turn in fed(_paged(spoken, after=start - 1)) if turn.number > claim.extracted_number)


def _paged(turns: QuerySet[Turn], *, after: int) -> Iterator[Turn]:
    """In order, a page at a time: the caller stops at its bound, and a session may hold 10,000 turns."""
    turns = turns.only("number", "role", "content", "tool_calls", "metadata", "timestamp", "created_at")
    while page := list(turns.filter(number__gt=after).order_by("number")[:_PAGE]):
        yield from page
        after = page[-1].number


def _known_facts(claim: Claim, *, now: datetime) -> list[Fact]:
    """The facts to show: operators' first, then the most recently confirmed."""
    session, person = claim.session, claim.session.end_user
    facts = Fact.objects.of(session.tenant, person).active(now=now)
    facts = facts.visible_to(user_id=person.external_id, agent_id=session.agent_id, roles=[])
    return list(facts.order_by("-binding", "-last_confirmed_at", "-pk")[: claim.rules.known_facts])


def _profile(claim: Claim) -> list[ProfileSection]:
    return list(ProfileSection.objects.filter(tenant=claim.session.tenant, end_user=claim.session.end_user))


def _messages(
    claim: Claim,
    turns: Iterable[FedTurn],
    facts: Iterable[Fact],
    profile: Iterable[ProfileSection],
    *,
    now: datetime,
) -> list[Message]:
    tenant, person = claim.session.tenant, claim.session.end_user
    zone = _zone(person)
    return memory_update.build(
        turns=[TurnInput(number=turn.number, role=turn.turn.role, text=turn.text, at=turn.at) for turn in turns],
        known_facts=[
            KnownFact(number=number, content=fact.content, category=fact.category, key=fact.key, binding=fact.binding)
            for number, fact in enumerate(facts, start=1)
        ],
        sections={row.section: row.summary for row in profile},
        today=now.astimezone(zone).date(),
        time_zone=zone.key,
        signals=claim.signals,
        guidance=tenant.extraction_guidance,
    )


def _zone(person: EndUser) -> ZoneInfo:
    """The person's time zone; a name that this host does not know counts as UTC."""
    try:
        return ZoneInfo(person.zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo("UTC")
