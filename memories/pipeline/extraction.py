"""What one model call is to read: a bounded batch of a session's new turns, and what is already known."""

from collections.abc import Iterable
from datetime import datetime

from django.db.models import Max, QuerySet

from memories.llm.prompts import memory_update
from memories.llm.prompts.framing import Message
from memories.llm.prompts.memory_update import KnownFact, TurnInput
from memories.models import Fact, ProfileSection, Role, Turn
from memories.pipeline import signal_phrases
from memories.pipeline.batches import Batch, ShownFact, bounded
from memories.pipeline.debounce import Claim
from memories.pipeline.feed import FedTurn
from memories.pipeline.reading import fed_turns
from memories.pipeline.zones import zone_or_utc


def gather(*, claim: Claim, now: datetime) -> Batch:
    """The next batch of the claimed session; its turns' text, shortened as the prompt shows it, is bounded by tokens.

    It holds at least one fed turn and ends with a round where it can; turns that arrive later are not in it.
    """
    first = claim.extracted_number + 1
    last = _turns(claim).aggregate(last=Max("number"))["last"] or claim.extracted_number
    unread = fed_turns(claim.session, after=claim.extracted_number, last=last)
    turns, is_rest = bounded(unread, claim.rules.batch_tokens, claim.batch_limit)
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


def _known_facts(claim: Claim, *, now: datetime) -> list[Fact]:
    """The facts to show: operators' first, then the most recently confirmed."""
    session, person = claim.session, claim.session.end_user
    facts = Fact.objects.of(session.tenant, person).active(now=now)
    facts = facts.visible_to(user_id=person.external_id, agent_id=session.agent_id, roles=[], person=person)
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
    zone = zone_or_utc(person.zone)
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
