"""What one model call reads: a bounded batch of a session's new turns, and the facts and profile that exist."""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from django.db.models import Max
from django.db.models.functions import Substr

from memories import conf, content_policy
from memories.extraction import excerpts
from memories.extraction.excerpts import Excerpt
from memories.extraction.turn_reader import fed_turns
from memories.llm.prompts import memory_update
from memories.llm.prompts.framing import LONGEST_TEXT, Message
from memories.llm.prompts.memory_update import NumberedFact, TurnInput, WantedField
from memories.models import SENT_AT, TRUSTED, Agent, Author, Fact, ProfileSection, Role, Turn
from memories.profiles import Field, fields_for, is_field_key, schemas_for
from memories.profiles.fields import BOOLEAN, CHOICE, DATE, INTEGER, LIST, NUMBER, TEXT
from memories.queue.session_queue import Claim
from memories.reconcile import neighbours
from memories.reconcile.batches import ShownFact, TurnBatch, bounded, shortened_cost
from memories.text import signal_phrases
from memories.text.support import HEARD
from memories.text.transcript import TranscriptTurn

# What the prompt calls the author of a text that a program may have made around the person's words.
DOUBTFUL = "doubtful"
# The texts of so many tool turns of a batch count as evidence.
_TOOLS_HEARD = 100


def gather(*, claim: Claim, now: datetime, guidance: str | None = None) -> TurnBatch:
    """The next batch of the claimed session; its turns' text, as the prompt shows it, is bounded by tokens.

    It holds at least one fed turn and ends with a round where it can; turns that arrive later are not in it.
    `guidance`: what the model is told besides, instead of the tenant's and the agent's.
    """
    session = claim.session
    new = Turn.objects.filter(session=session).readable().after(claim.row.extracted_number)
    first = claim.row.extracted_number + 1
    last = new.aggregate(last=Max("number"))["last"] or claim.row.extracted_number
    unread = fed_turns(session, after=claim.row.extracted_number, last=last, with_left=True)
    # A batch that was too long even for a turn alone: that is cut to length.
    is_least = claim.row.batch_limit == 1
    budget = claim.rules.batch_tokens
    turns, is_rest = bounded(unread, budget, claim.row.batch_limit, shortened_cost if is_least else excerpts.cost)
    if turns and not is_rest:
        last = turns[-1].number
    if not any(turn.is_user for turn in turns):
        return TurnBatch(first_number=first, last_number=last)
    facts = _facts_to_show(claim, turns, now=now)
    patterns = signal_phrases.patterns_of(session.tenant.signal_phrases)
    most = 0 if is_least else excerpts.most_of(budget)
    shown = {turn.number: excerpts.excerpt(turn.text, most, patterns) for turn in turns if turn.is_user}
    owner = session.owner(session.tenant)
    profile = list(ProfileSection.objects.filter(tenant=session.tenant, end_user=session.end_user, agent_id=owner))
    # A paraphrase of what the person or an operator stated before is supported, too.
    stated_texts = [fact.content for fact in facts if fact.trust in TRUSTED]
    stated_texts += [row.summary for row in profile if row.trust in TRUSTED]
    tool_turns = new.filter(number__range=(first, last), role=Role.TOOL).order_by("number")
    fields = fields_for(schemas_for(session.tenant, session.agent_id)) if claim.config.mode != conf.LLM_RULES else {}
    heard = {"heard": Substr("content", 1, HEARD), "sent": SENT_AT}
    tools = list(tool_turns.values_list("number", "pk", heard["heard"], heard["sent"]))
    return TurnBatch(
        first_number=first,
        last_number=last,
        turns=_as_shown(turns, shown) if claim.config.mode != conf.LLM_RULES else turns,
        shortened=sum(one.left_out > 0 for one in shown.values()),
        left_out=sum(one.left_out for one in shown.values()),
        has_long=not is_least and any(len(one.text) > LONGEST_TEXT for one in shown.values()),
        tool_turns={number: pk for number, pk, _, _ in tools},
        tools_sent_at={number: sent_at for number, _, _, sent_at in tools},
        tool_texts=tuple(text for _, _, text, _ in tools[:_TOOLS_HEARD] if text),
        existing_texts=tuple(stated_texts),
        shown_facts=tuple(ShownFact(fact.pk, bytes(fact.content_hash), fact.content) for fact in facts),
        shown_profile={row.section: row.version for row in profile},
        # A model that reads a conversation of last year is told the day of that conversation.
        messages=_messages(
            claim,
            _as_shown(turns, shown),
            facts,
            profile,
            day=min(now, max(turn.at for turn in turns)),
            guidance=guidance,
            fields=fields,
        ),
        patterns=patterns,
        fields=fields,
    )


def _as_shown(turns: Iterable[TranscriptTurn], shown: Mapping[int, Excerpt]) -> tuple[TranscriptTurn, ...]:
    """What the model is not shown supports nothing that it says."""
    return tuple(replace(turn, text=shown[turn.number].text) if turn.is_user else turn for turn in turns)


def _facts_to_show(claim: Claim, turns: Sequence[TranscriptTurn], *, now: datetime) -> list[Fact]:
    """The facts that the model is told. Where they have no room all: operators' and fields of profiles, then up to half
    of the room for those nearest to what the user says now, then the most recently confirmed."""
    session, person, most = claim.session, claim.session.end_user, claim.rules.known_facts
    visible = Fact.objects.of(session.tenant, person).active(now=now)
    visible = visible.visible_to(person, agent_id=session.agent_id, roles=[])
    visible = visible.latest_for(session.owner(session.tenant))
    rows = visible.order_by("-binding", "-last_confirmed_at", "-pk").values_list("pk", "binding", "key")
    # Of a list that grows the model has to know the rest.
    bound = [pk for pk, binding, key in rows if binding or is_field_key(key)][:most]
    others = [pk for pk, binding, key in rows if not (binding or is_field_key(key))]
    near: list[uuid.UUID] = []
    if len(bound) < most < len(rows):
        own = [turn.turn.pk for turn in turns if turn.is_user]
        near = neighbours.of_turns(person=person, turns=own, facts=others, most=(most - len(bound) + 1) // 2)
    chosen = list(dict.fromkeys([*bound, *near, *others]))[:most]
    found = visible.in_bulk(chosen)
    # A fact may have gone since the first look.
    return [found[pk] for pk in chosen if pk in found]


def _input(turn: TranscriptTurn) -> TurnInput:
    """The turn as the model is shown it; with whose words it holds, where its role does not say it."""
    author = DOUBTFUL if turn.is_doubtful else Author.OTHER if turn.is_others else ""
    name = turn.turn.name if author == Author.OTHER else ""
    return TurnInput(turn.number, turn.turn.role, turn.text, turn.at, is_fitted=turn.is_user, author=author, name=name)


def _messages(
    claim: Claim,
    turns: Iterable[TranscriptTurn],
    facts: Iterable[Fact],
    profile: Iterable[ProfileSection],
    *,
    day: datetime,
    guidance: str | None,
    fields: Mapping[str, Field],
) -> list[Message]:
    person = claim.session.end_user
    if guidance is None:
        guidance = Agent.objects.guidance_for(claim.session.tenant, claim.session.agent_id)
    policy = content_policy.in_force(claim.session.tenant)
    return memory_update.build(
        turns=[_input(turn) for turn in turns],
        existing_facts=[
            NumberedFact(
                number=number, content=fact.content, category=fact.category, key=fact.key, binding=fact.binding
            )
            for number, fact in enumerate(facts, start=1)
        ],
        sections={row.section: row.summary for row in profile},
        today=person.local(day).date(),
        time_zone=person.clock.key,
        signals=claim.row.signals,
        guidance=guidance,
        with_triples=claim.rules.triples,
        # All but the words, which the hub itself looks for.
        forbidden=policy.topics if policy else [],
        fields=[_wanted(field) for field in fields.values()],
    )


_WORDS = {
    TEXT: "text",
    DATE: "a day",
    NUMBER: "a number",
    INTEGER: "a whole number",
    BOOLEAN: "true or false",
}


def _wanted(field: Field) -> WantedField:
    """The field of a profile as the prompt names it."""
    kind = field.item_kind if field.kind == LIST else field.kind
    expected = f"one of {json.dumps(field.choices, ensure_ascii=False)}" if kind == CHOICE else _WORDS[kind]
    limits = [f"{name} {field.spec[name]}" for name in ("minimum", "maximum") if name in field.spec]
    values = ", ".join([f"a list, of each {expected}" if field.kind == LIST else expected, *limits])
    return WantedField(field.key, values, f"{field.label} (profile {field.profile})", field.description)
