"""Agents with their switches and guidance."""

from rest_framework import serializers

from memories.api.v1.fields import AgentId, ChangesSerializer, ExactText, Flag, PageQuery, Timestamp
from memories.api.v1.filters import where
from memories.models import Agent
from memories.models.people.agents import LONGEST_GUIDANCE


class AgentsQuery(PageQuery):
    agent_id = where("agent_id", AgentId(help_text="Only the agent that you call so."))


class AgentChangesSerializer(ChangesSerializer):
    extraction = Flag(required=False, help_text="false: turns of its sessions are stored and wait.")
    recall = Flag(required=False, help_text="false: its contexts and searches are empty.")
    guidance = ExactText(
        required=False,
        allow_blank=True,
        max_length=LONGEST_GUIDANCE,
        help_text="Instructions to the model for its sessions, after those of the tenant.",
    )


class AgentSerializer(serializers.Serializer[Agent]):
    """An agent with its switches and guidance; `id` is the hub's, `agent_id` yours."""

    id = serializers.UUIDField()
    agent_id = serializers.CharField(help_text="Yours, lower-cased.")
    extraction = serializers.BooleanField()
    recall = serializers.BooleanField()
    guidance = serializers.CharField()
    created_at = Timestamp(help_text="When it was first seen.")
