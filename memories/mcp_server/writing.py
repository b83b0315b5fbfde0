"""What a model writes: facts and conversations. They are the agent's word, unless the key was made to speak for the
person in so many words (`--writes-as user`)."""

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rest_framework import serializers

from memories.api.v1.fields import CleanText, ExactText, OneOf, Strict
from memories.api.v1.turns.serializers import MAX_MESSAGES, TurnsSerializer
from memories.api.visibility import FactVisibility
from memories.capture import ingest, resent
from memories.capture.ingest import Conversation, PostedMessage
from memories.curation.facts.adding import FactDraft, add_fact
from memories.curation.people.records import person_for_writing
from memories.mcp_server.calls import Call, Outcome
from memories.models import Category, Fact, Role, Status

# What an agent reports is its own word: the turns are the assistant's, and say whose words it says they were.
_REPORTED = {Role.USER: "The user said: ", Role.ASSISTANT: ""}


class MemoryInput(Strict):
    content = CleanText(max_length=2000)
    category = OneOf(Category.values, default=Category.OTHER.value)


class SaidInput(Strict):
    role = OneOf([Role.USER.value, Role.ASSISTANT.value])
    content = ExactText()


class ConversationInput(Strict):
    messages: serializers.ListSerializer[Any] = serializers.ListSerializer(
        child=SaidInput(), min_length=1, max_length=MAX_MESSAGES
    )


def add_memory(call: Call) -> Outcome:
    asker = call.asker
    draft = FactDraft(**call.read(MemoryInput), agent_id=asker.agent_id)
    person = person_for_writing(tenant=asker.tenant, user_id=asker.user_id, now=call.now)
    visible = FactVisibility.of(asker.caller, {"agent_id": asker.agent_id}).filter(Fact.objects.all(), person)
    fact = add_fact(
        end_user=person, draft=draft, actor=asker.caller.actor, now=call.now, voice=asker.voice, visible=visible
    ).fact
    text = f"Remembered (id {fact.pk})."
    if fact.status == Status.PENDING:
        text = f"Kept as a suggestion (id {fact.pk}): it is remembered once an operator approves it."
    return Outcome(text, {"id": str(fact.pk), "status": fact.status})


def remember_conversation(call: Call) -> Outcome:
    asker, key = call.asker, call.asker.caller.key
    # Checked as what is posted over /turns.
    posted = TurnsSerializer().run_validation(
        {"user_id": asker.user_id, "session_id": f"mcp-{uuid.uuid4()}", **call.read(ConversationInput)}
    )
    messages: Sequence[PostedMessage] = posted["messages"]
    if not asker.speaks_for_user:
        messages = [_reported(message) for message in messages]
    going_on = resent.session_of(
        asker.tenant, user_id=asker.user_id, agent_id=asker.agent_id, messages=messages, now=call.now
    )
    session_id = going_on or posted["session_id"]
    receipt = ingest.store_lacking(
        tenant=asker.tenant,
        conversation=Conversation(asker.user_id, session_id, asker.agent_id, messages),
        lacking=lambda session: resent.lacking(session, messages),
        key_id=key.pk,
        memory_of=key.memory_of,
    )
    if receipt.session is None:
        return Outcome("Nothing was kept: capture is switched off here.", {"session_id": None, "stored": 0})
    known = len(messages) - receipt.accepted
    text = f"Kept {receipt.accepted} messages; {known} were known." if known else f"Kept {receipt.accepted} messages."
    return Outcome(text, {"session_id": session_id, "stored": receipt.accepted})


def _reported(message: PostedMessage) -> PostedMessage:
    text = _REPORTED[Role(message.role)] + message.content
    return replace(message, role=Role.ASSISTANT.value, content=text)
