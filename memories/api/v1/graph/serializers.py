"""The graph: triples as they are stated, asked for and shown."""

import re
from datetime import datetime
from typing import Any

from rest_framework import serializers

from memories.api.v1.fields import (
    AgentId,
    CleanText,
    Identifier,
    Moment,
    OneOf,
    OrNull,
    OurId,
    PageQuery,
    Roles,
    Share,
    StatedByField,
    Strict,
    Timestamp,
)
from memories.graph.reading import Direction
from memories.models import GraphEntity, GraphTriple, TripleStatus, Trust
from memories.models.memories.graph import LONGEST_ENTITY, LONGEST_PREDICATE, LONGEST_TYPE, state_of

STATES = ("active", "historical", "future")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z")


class GraphMoment(Moment):
    """`YYYY-MM-DD`, which is its midnight, or a full time in UTC. Other zones are refused: nobody has to guess."""

    default_error_messages = {
        "invalid": "Give a date (2026-11-03), or a time in UTC with its seconds and Z (2026-11-03T09:12:00Z)."
    }

    def to_internal_value(self, value: Any) -> datetime:
        if not isinstance(value, str) or not value.isascii():
            self.fail("invalid")
        if _DATE.fullmatch(value):
            return super().to_internal_value(f"{value}T00:00:00Z")
        if not _UTC.fullmatch(value):
            self.fail("invalid")
        return super().to_internal_value(value)


class Name(CleanText):
    """What an entity is called."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=LONGEST_ENTITY, **kwargs)


class TripleRelationSerializer(Strict):
    user_id = Identifier()
    agent_id = AgentId(help_text="Whose triple it is; left out: the person's own, for all agents.")
    subject = Name(help_text="`user`, or the person's id or name, is the person.")
    predicate = CleanText(max_length=LONGEST_PREDICATE, help_text="`Works at` is `works_at`.")


class NewTripleSerializer(TripleRelationSerializer):
    object = Name()
    valid_from = GraphMoment(required=False, allow_null=True, help_text="Left out: not known since when.")
    valid_to = GraphMoment(required=False, allow_null=True, help_text="It holds until before this; left out: still.")
    confidence = Share(default=0.9)
    subject_type = CleanText(required=False, max_length=LONGEST_TYPE, help_text="Such as person or place.")
    object_type = CleanText(required=False, max_length=LONGEST_TYPE)
    turn_id = OurId(required=False, help_text="The turn that says so. It can only lower the trust.")
    stated_by = StatedByField()


class InvalidationSerializer(TripleRelationSerializer):
    object = Name()
    ended = GraphMoment(required=False, help_text="It held until before this; left out: now.")
    stated_by = StatedByField()


class SupersessionSerializer(TripleRelationSerializer):
    old_object = Name()
    new_object = Name()
    at = GraphMoment(required=False, help_text="The old ends and the new begins here; left out: now.")
    confidence = Share(default=0.9)
    object_type = CleanText(required=False, max_length=LONGEST_TYPE)
    turn_id = OurId(required=False)
    stated_by = StatedByField()


class GraphQuery(PageQuery):
    """Whose graph, for whom, and as of when."""

    user_id = Identifier()
    agent_id = AgentId(help_text="The agent that asks: its private triples are shown, too.")
    roles = Roles()
    as_of = GraphMoment(
        required=False, help_text="Only what holds then. Without it all, each marked active, historical or future."
    )


class EntityQuery(GraphQuery):
    name = Name()
    direction = OneOf([one.value for one in Direction], default=Direction.OUTGOING.value)


class RelationsQuery(GraphQuery):
    predicate = CleanText(max_length=LONGEST_PREDICATE)


class TimelineQuery(GraphQuery):
    entity = Name(required=False)


class GraphStatsQuery(Strict):
    user_id = Identifier()
    agent_id = AgentId()
    roles = Roles()
    as_of = GraphMoment(required=False, help_text="Counted as of then.")


class EntitySerializer(serializers.ModelSerializer[GraphEntity]):
    """Something that a graph is about; of another name of it the entity itself."""

    type = OrNull()

    class Meta:
        model = GraphEntity
        fields = ["id", "name", "type"]


class TripleSerializer(serializers.ModelSerializer[GraphTriple]):
    """That a subject stands in a relation to an object, from `valid_from` until before `valid_to`."""

    agent_id = OrNull()
    subject = EntitySerializer()
    object = EntitySerializer()
    valid_from = Timestamp(allow_null=True)
    valid_to = Timestamp(allow_null=True)
    state = serializers.ChoiceField(STATES)
    status = serializers.ChoiceField([TripleStatus.ACTIVE.value, TripleStatus.PENDING.value])
    trust = serializers.ChoiceField([one.value for one in Trust])
    fact_id = serializers.UUIDField(allow_null=True)
    turn_id = serializers.UUIDField(allow_null=True)

    class Meta:
        model = GraphTriple
        fields = [
            "id",
            "agent_id",
            "subject",
            "predicate",
            "object",
            "valid_from",
            "valid_to",
            "state",
            "confidence",
            "status",
            "trust",
            "fact_id",
            "turn_id",
            "created_at",
            "updated_at",
        ]


def triple_answer(row: Any, *, now: datetime) -> dict[str, Any]:
    """One of reading.as_rows() in the shape of TripleSerializer. By hand for speed: agents read hundreds of them."""
    return {
        "id": row.id,
        "agent_id": row.agent_id or None,
        "subject": _entity(row.subject__merged_into__id, row.subject__merged_into__name, row.subject__merged_into__type)
        or _entity(row.subject__id, row.subject__name, row.subject__type),
        "predicate": row.predicate,
        "object": _entity(row.object__merged_into__id, row.object__merged_into__name, row.object__merged_into__type)
        or _entity(row.object__id, row.object__name, row.object__type),
        "valid_from": row.valid_from,
        "valid_to": row.valid_to,
        "state": state_of(row.valid_from, row.valid_to, now),
        "confidence": row.confidence,
        "status": row.status,
        "trust": row.trust,
        "fact_id": row.fact_id,
        "turn_id": row.turn_id,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }


def _entity(pk: Any, name: str, kind: str) -> dict[str, Any] | None:
    """Another name of an entity is shown as the entity."""
    return {"id": pk, "name": name, "type": kind or None} if pk else None


class TriplePageSerializer(serializers.Serializer[Any]):
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    total = serializers.IntegerField(help_text="Of all pages.")
    results = TripleSerializer(many=True)


class EndedTriplesSerializer(serializers.Serializer[Any]):
    """What an invalidation ended; nothing if nothing was open."""

    triples = TripleSerializer(many=True, help_text="Those that this ended; none when none was open.")


class GraphStatsSerializer(serializers.Serializer[Any]):
    """How much a graph has, and what its relations are called."""

    entities = serializers.IntegerField()
    triples = serializers.IntegerField()
    active = serializers.IntegerField()
    historical = serializers.IntegerField()
    future = serializers.IntegerField()
    predicates = serializers.ListField(child=serializers.CharField())
