"""What a model writes: facts, conversations, proposals and requests. They are the agent's word, unless the key was made
to speak for the person in so many words (`--writes-as user`)."""

import uuid
from collections.abc import Sequence
from dataclasses import replace

from rest_framework import serializers

from memories.api import lookups
from memories.api.v1.fields import CleanText, ExactText, OneOf, OurId, Strict
from memories.api.v1.turns.serializers import MAX_MESSAGES, TurnsSerializer
from memories.api.visibility import FactVisibility
from memories.capture import ingest, resent
from memories.capture.ingest import Conversation, PostedMessage
from memories.curation.facts.adding import FactDraft, add_fact
from memories.curation.facts.proposing import ask_to_forget, propose_correction
from memories.curation.people.records import person_for_writing
from memories.exceptions import NotFound
from memories.mcp_server.calls import AgentCall, ToolResult
from memories.mcp_server.reading import visible_facts
from memories.models import Category, Fact, Role, Status

# What an agent reports is its own word: the turns are the assistant's, and say whose words it says they were.
_REPORTED = {Role.USER: "The user said: ", Role.ASSISTANT: ""}


class MemoryInput(Strict):
    content = CleanText(max_length=2000)
    category = OneOf(Category.values, default=Category.OTHER.value)


class CorrectionInput(Strict):
    id = OurId()
    content = CleanText(max_length=2000)


class FactIdInput(Strict):
    id = OurId()


class MessageInput(Strict):
    role = OneOf([Role.USER.value, Role.ASSISTANT.value])
    content = ExactText()


class ConversationInput(Strict):
    messages = serializers.ListField(child=MessageInput(), min_length=1, max_length=MAX_MESSAGES)


def add_memory(call: AgentCall) -> ToolResult:
    asker = call.asker
    draft = FactDraft(**call.read(MemoryInput), agent_id=asker.agent_id)
    person = person_for_writing(tenant=asker.tenant, user_id=asker.user_id, now=call.now)
    visible = FactVisibility.of(asker.caller, {"agent_id": asker.agent_id}).filter(Fact.objects.all(), person)
    fact = add_fact(
        end_user=person,
        draft=draft,
        actor=asker.caller.actor,
        now=call.now,
        write_trust=asker.write_trust,
        visible=visible,
    ).row
    text = f"Remembered (id {fact.pk})."
    if fact.status == Status.PENDING:
        text = f"Kept as a suggestion (id {fact.pk}): it is remembered once an operator approves it."
    return ToolResult(text, {"id": str(fact.pk), "status": fact.status})


def correct_memory(call: AgentCall) -> ToolResult:
    asker, given = call.asker, call.read(CorrectionInput)
    fact = propose_correction(
        fact=_fact(call, given["id"]),
        content=given["content"],
        actor=asker.caller.actor,
        now=call.now,
        write_trust=asker.write_trust,
    )
    text = f"Proposed (id {fact.pk}): an operator chooses between the two. Until then the old text stays."
    return ToolResult(text, {"id": str(fact.pk), "status": fact.status})


def forget_memory(call: AgentCall) -> ToolResult:
    asker, fact = call.asker, _fact(call, call.read(FactIdInput)["id"])
    is_gone = ask_to_forget(fact_id=fact.pk, tenant=asker.tenant, actor=asker.caller.actor, now=call.now)
    text = "Forgotten." if is_gone else "An operator was asked to forget it. Until then it stays."
    return ToolResult(text, {"id": str(fact.pk), "forgotten": is_gone})


def _fact(call: AgentCall, fact_id: uuid.UUID) -> Fact:
    """The person's fact, if the key sees it. Errors: NotFound, PersonRestricted."""
    asker = call.asker
    person = lookups.find_person(tenant=asker.tenant, user_id=asker.user_id)
    if person is None:
        raise NotFound
    lookups.require_unrestricted(person)
    fact = visible_facts(asker).filter(pk=fact_id).first()
    if fact is None:
        raise NotFound("This person has no memory with this id: take one from search_memory or list_memories.")
    return fact


def remember_conversation(call: AgentCall) -> ToolResult:
    asker, key = call.asker, call.asker.caller.key
    # Checked as what is posted over /turns.
    posted = TurnsSerializer().run_validation(
        {"user_id": asker.user_id, "session_id": f"mcp-{uuid.uuid4()}", **call.read(ConversationInput)}
    )
    messages: Sequence[PostedMessage] = posted["messages"]
    if not asker.speaks_for_user:
        messages = [
            replace(message, role=Role.ASSISTANT.value, content=_REPORTED[Role(message.role)] + message.content)
            for message in messages
        ]
    # The agent tells the conversation itself: its answers show where it goes on, as those that the gateway passes.
    messages = [
        replace(message, answer_key=resent.answer_key(asker.tenant, messages[:at], message))
        if message.role == Role.ASSISTANT
        else message
        for at, message in enumerate(messages)
    ]
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
        return ToolResult("Nothing was kept: capture is switched off here.", {"session_id": None, "stored": 0})
    duplicates = len(messages) - receipt.accepted
    rest = f"; {duplicates} were known" if duplicates else ""
    text = f"Kept {receipt.accepted} messages{rest}."
    return ToolResult(text, {"session_id": session_id, "stored": receipt.accepted})
