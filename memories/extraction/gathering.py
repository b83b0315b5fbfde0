"""What one model call reads: a bounded batch of a session's new turns, and the facts and profile that exist."""

import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime

from django.db.models import Max
from django.db.models.functions import Substr

from memories.extraction.turn_reader import fed_turns
from memories.llm.prompts import memory_update
from memories.llm.prompts.framing import Message
from memories.llm.prompts.memory_update import NumberedFact, TurnInput
from memories.models import SENT_AT, Agent, Fact, ProfileSection, Role, Trust, Turn
from memories.queue.session_queue import Claim
from memories.reconcile import neighbours
from memories.reconcile.batches import ShownFact, TurnBatch, bounded
from memories.text import signal_phrases
from memories.text.support import HEARD
from memories.text.transcript import TranscriptTurn
from memories.time_zones import zone_or_utc

# The texts of so many tool turns of a batch count as evidence.
_TOOLS_HEARD = 100


def gather(*, claim: Claim, now: datetime) -> TurnBatch:
    """The next batch of the claimed session; its turns' text, shortened as the prompt shows it, is bounded by tokens.

    It holds at least one fed turn and ends with a round where it can; turns that arrive later are not in it.
    """
    session = claim.session
    new = Turn.objects.filter(session=session).current().after(claim.row.extracted_number)
    first = claim.row.extracted_number + 1
    last = new.aggregate(last=Max("number"))["last"] or claim.row.extracted_number
    unread = fed_turns(session, after=claim.row.extracted_number, last=last)
    turns, is_rest = bounded(unread, claim.rules.batch_tokens, claim.row.batch_limit)
    if turns and not is_rest:
        last = turns[-1].number
    if not any(turn.is_user for turn in turns):
        return TurnBatch(first_number=first, last_number=last)
    facts = _facts_to_show(claim, turns, now=now)
    owner = session.owner(session.tenant)
    profile = list(ProfileSection.objects.filter(tenant=session.tenant, end_user=session.end_user, agent_id=owner))
    # A paraphrase of what the person or an operator stated before is supported, too.
    stated = (Trust.USER, Trust.OPERATOR)
    stated_texts = [fact.content for fact in facts if fact.trust in stated]
    stated_texts += [row.summary for row in profile if row.trust in stated]
    tool_turns = new.filter(number__range=(first, last), role=Role.TOOL).order_by("number")
    heard = {"heard": Substr("content", 1, HEARD), "sent": SENT_AT}
    tools = list(tool_turns.values_list("number", "pk", heard["heard"], heard["sent"]))
    return TurnBatch(
        first_number=first,
        last_number=last,
        turns=turns,
        tool_turns={number: pk for number, pk, _, _ in tools},
        tools_sent_at={number: sent_at for number, _, _, sent_at in tools},
        tool_texts=tuple(text for _, _, text, _ in tools[:_TOOLS_HEARD] if text),
        existing_texts=tuple(stated_texts),
        shown_facts=tuple(ShownFact(fact.pk, bytes(fact.content_hash), fact.content) for fact in facts),
        shown_profile={row.section: row.version for row in profile},
        # A model that reads a conversation of last year is told the day of that conversation.
        messages=_messages(claim, turns, facts, profile, day=min(now, max(turn.at for turn in turns))),
        patterns=signal_phrases.patterns_of(session.tenant.signal_phrases),
    )


def _facts_to_show(claim: Claim, turns: Sequence[TranscriptTurn], *, now: datetime) -> list[Fact]:
    """The facts that the model is told. Where they have no room all: operators', then up to half of the room for those
    nearest to what the user says now, then the most recently confirmed."""
    session, person, most = claim.session, claim.session.end_user, claim.rules.known_facts
    visible = Fact.objects.of(session.tenant, person).active(now=now)
    visible = visible.visible_to(person, agent_id=session.agent_id, roles=[])
    visible = visible.latest_for(session.owner(session.tenant))
    rows = visible.order_by("-binding", "-last_confirmed_at", "-pk").values_list("pk", "binding")
    bound = [pk for pk, binding in rows if binding][:most]
    others = [pk for pk, binding in rows if not binding]
    near: list[uuid.UUID] = []
    if len(bound) < most < len(rows):
        own = [turn.turn.pk for turn in turns if turn.is_user]
        near = neighbours.of_turns(person=person, turns=own, facts=others, most=(most - len(bound) + 1) // 2)
    chosen = list(dict.fromkeys([*bound, *near, *others]))[:most]
    found = visible.in_bulk(chosen)
    # A fact may have gone since the first look.
    return [found[pk] for pk in chosen if pk in found]


def _messages(
    claim: Claim,
    turns: Iterable[TranscriptTurn],
    facts: Iterable[Fact],
    profile: Iterable[ProfileSection],
    *,
    day: datetime,
) -> list[Message]:
    zone = zone_or_utc(claim.session.end_user.zone)
    return memory_update.build(
        turns=[TurnInput(number=turn.number, role=turn.turn.role, text=turn.text, at=turn.at) for turn in turns],
        existing_facts=[
            NumberedFact(
                number=number, content=fact.content, category=fact.category, key=fact.key, binding=fact.binding
            )
            for number, fact in enumerate(facts, start=1)
        ],
        sections={row.section: row.summary for row in profile},
        today=day.astimezone(zone).date(),
        time_zone=zone.key,
        signals=claim.row.signals,
        guidance=Agent.objects.guidance_for(claim.session.tenant, claim.session.agent_id),
        with_triples=claim.rules.triples,
    )
