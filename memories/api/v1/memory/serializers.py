"""/memory: one person's memory as a document of DeerFlow's shape, out and in.

What came in comes out again in the document's own words, as long as it still holds: the id of a fact, its category,
its times, its source, and whatever else the document says of it.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from drf_spectacular.extensions import OpenApiSerializerExtension
from rest_framework import serializers

from memories.api.v1.facts.serializers import FactQuery
from memories.api.v1.fields import (
    AgentId,
    CleanText,
    ExactText,
    Identifier,
    Moment,
    Share,
    StatedByField,
    Timestamp,
    json_size,
)
from memories.categories import CATEGORIES, Category
from memories.curation.statements.documents import DocumentFact, DocumentSection, HeldParts
from memories.exceptions import InvalidInput
from memories.models import Fact, ProfileSection, Section
from memories.models.ids import OUR_VERSION, parse_uuid

VERSION = "1.0"
MANUAL = "manual"
MAX_FACTS = 5000
DEFAULT_CONFIDENCE = 0.5
# Bytes of JSON that a fact of a document may have in members that the hub does not know.
MOST_UNKNOWN = 4000
# Key under which an earlier version kept the name of the conversation that an imported fact came from.
_OLD_SOURCE = "imported_source"
# Categories of DeerFlow's that have another name here.
_CATEGORIES = {name: category for category, row in CATEGORIES.items() for name in row.imported_from}
_MOMENT = Timestamp()
# Section of the profile → the document's part and name for it.
PLACES: Mapping[str, tuple[str, str]] = {
    Section.WORK_CONTEXT: ("user", "workContext"),
    Section.PERSONAL_CONTEXT: ("user", "personalContext"),
    Section.TOP_OF_MIND: ("user", "topOfMind"),
    Section.RECENT_MONTHS: ("history", "recentMonths"),
    Section.EARLIER_CONTEXT: ("history", "earlierContext"),
    Section.LONG_TERM_BACKGROUND: ("history", "longTermBackground"),
}


class Lenient(serializers.Serializer[Any]):
    """Another program's document: what we do not know in it means nothing here."""


class PartSerializer(Lenient):
    summary = CleanText(max_length=4000, allow_blank=True, required=False)
    updatedAt = ExactText(required=False, allow_blank=True, allow_null=True, max_length=255)  # noqa: N815


class UserPartsSerializer(Lenient):
    workContext = PartSerializer(required=False)  # noqa: N815
    personalContext = PartSerializer(required=False)  # noqa: N815
    topOfMind = PartSerializer(required=False)  # noqa: N815


class HistoryPartsSerializer(Lenient):
    recentMonths = PartSerializer(required=False)  # noqa: N815
    earlierContext = PartSerializer(required=False)  # noqa: N815
    longTermBackground = PartSerializer(required=False)  # noqa: N815


class DocumentFactSerializer(Lenient):
    """A fact of a document. Members that are not named here come back as they were."""

    id = ExactText(required=False, allow_null=True, allow_blank=True, max_length=255)
    content = CleanText(max_length=2000)
    category = ExactText(
        default=Category.CONTEXT.value,
        allow_blank=True,
        max_length=100,
        help_text="One that is not known counts as other in the hub, and comes back as it was.",
    )
    confidence = Share(default=DEFAULT_CONFIDENCE)
    createdAt = ExactText(required=False, allow_null=True, allow_blank=True, max_length=255)  # noqa: N815
    source = ExactText(  # type: ignore[assignment]
        required=False, allow_null=True, allow_blank=True, max_length=255, help_text="The conversation that it is from."
    )
    sourceError = CleanText(  # noqa: N815
        required=False, allow_null=True, allow_blank=True, max_length=2000, help_text="Of a correction: what was wrong."
    )

    default_error_messages = {
        "unknown_size": f"What is not known of a fact may have at most {MOST_UNKNOWN:,} bytes as JSON."
    }

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        value: dict[str, Any] = super().to_internal_value(data)
        unknown = {name: data[name] for name in data if name not in self.fields}
        if unknown and json_size(unknown) > MOST_UNKNOWN:
            self.fail("unknown_size")
        given = {name: value[name] for name in ("category", "createdAt", "source") if value.get(name) is not None}
        return value | {"given": given | unknown}


class OpenFactSchema(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Says in the schema that a fact may have more members."""

    target_class = DocumentFactSerializer

    def map_serializer(self, auto_schema: Any, direction: str) -> dict[str, Any]:
        schema: dict[str, Any] = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        return schema | {"additionalProperties": True}


class DocumentSerializer(Lenient):
    """A memory document; what is left out stays as it is."""

    version = serializers.CharField(default=VERSION)
    lastUpdated = ExactText(required=False, allow_blank=True, allow_null=True, max_length=255)  # noqa: N815
    user = UserPartsSerializer(required=False)
    history = HistoryPartsSerializer(required=False)
    facts = serializers.ListField(child=DocumentFactSerializer(), required=False, max_length=MAX_FACTS)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs.keys().isdisjoint(("user", "history", "facts")):
            raise serializers.ValidationError("A memory document has user, history or facts.", code="empty")
        return attrs


class NamedDocumentSerializer(DocumentSerializer):
    agent_of_key = True

    user_id = Identifier(required=False, help_text="Here or in the query.")
    agent_id = AgentId(help_text="Here or in the query: the document is that agent's.")
    stated_by = StatedByField()


class WaitingSerializer(serializers.Serializer[Any]):
    """What waits for an operator."""

    facts = serializers.IntegerField()
    sections = serializers.IntegerField()


class TakenDocumentSerializer(DocumentSerializer):
    """The document as it is served afterwards."""

    pending = WaitingSerializer(
        required=False, help_text="What of the given document waits for an operator; absent when nothing does."
    )


class MemoryQuery(FactQuery):
    user_id = Identifier()


class PersonParameter(FactQuery):
    user_id = Identifier(required=False, help_text="Here or in the body.")


def named_person(body: Mapping[str, Any], query: Mapping[str, Any]) -> str:
    """The user_id of the document. Errors: InvalidInput when there is none, or two different ones."""
    named = {where["user_id"] for where in (body, query) if "user_id" in where}
    if not named:
        raise InvalidInput.at("/user_id", "Say whose memory it is, here or in the query.", code="required")
    if len(named) > 1:
        raise InvalidInput.at("/user_id", "The query names another person.", code="mismatch")
    return str(named.pop())


def named_agent(body: Mapping[str, Any], query: Mapping[str, Any]) -> str:
    """The agent_id of the document, or "". Errors: InvalidInput when there are two different ones."""
    named = {where["agent_id"] for where in (body, query) if where.get("agent_id")}
    if len(named) > 1:
        raise InvalidInput.at("/agent_id", "The query names another agent.", code="mismatch")
    return str(named.pop()) if named else ""


def sections_of(document: Mapping[str, Any]) -> dict[str, DocumentSection]:
    """The document's summaries by section of the profile. An empty summary empties the section."""
    parts = {section: document.get(part, {}).get(name, {}) for section, (part, name) in PLACES.items()}
    return {
        section: DocumentSection(part["summary"], part.get("updatedAt") or "")
        for section, part in parts.items()
        if "summary" in part
    }


def facts_of(document: Mapping[str, Any]) -> list[DocumentFact]:
    return [_fact_in(given) for given in document.get("facts", ())]


def pending_of(waiting: HeldParts) -> dict[str, Any]:
    """The answer's member that counts what waits; empty when nothing does."""
    counts = {"facts": waiting.facts, "sections": waiting.sections}
    return {"pending": counts} if any(counts.values()) else {}


def document_of(sections: Iterable[ProfileSection], facts: Sequence[Fact]) -> dict[str, Any]:
    """The document of these sections and facts. The facts are of `lookups.facts`."""
    rows = {row.section: row for row in sections}
    document: dict[str, Any] = {"version": VERSION, "lastUpdated": _last_updated([*rows.values(), *facts])}
    for section, (part, name) in PLACES.items():
        row = rows.get(section)
        updated = ""
        if row:
            # When the row was written, in the words of the document that left it as it is.
            stated = _current(row).get("given", {}).get("updatedAt")
            updated = stated if isinstance(stated, str) else _text_of(row.updated_at)
        document.setdefault(part, {})[name] = {"summary": row.summary if row else "", "updatedAt": updated}
    return document | {"facts": [_fact_out(fact) for fact in facts]}


def _last_updated(rows: Iterable[ProfileSection | Fact]) -> str:
    """When the last of the rows changed; one that is as a document left it, by the word of that document."""
    stated = [(row, str(_current(row).get("updated") or "")) for row in rows]
    moment, text = max(((_moment(text) or row.updated_at, text) for row, text in stated), default=(None, ""))
    return text or _text_of(moment)


def _current(row: ProfileSection | Fact) -> Mapping[str, Any]:
    """What the row keeps of its document, if nothing has changed the row since; empty otherwise."""
    return row.document if row.document and row.document["version"] == row.version else {}


def _fact_out(fact: Fact) -> dict[str, Any]:
    given = (fact.document or {}).get("given", {})
    # The first conversation that says it, by the caller's name; `manual` for a fact that somebody stated outright.
    cited = [evidence.session.external_id for evidence in fact.cited]
    imported = (fact.structured or {}).get(_OLD_SOURCE)
    own = given.get("category")
    shown: dict[str, Any] = given | {
        "id": fact.external_id or str(fact.pk),
        "content": fact.content,
        "category": own if own is not None and _category_of(given) == fact.category else fact.category,
        "confidence": fact.confidence,
        "createdAt": given.get("createdAt", _text_of(fact.first_observed_at)),
        "source": given.get("source", cited[0] if cited else str(imported or MANUAL)),
    }
    if "updatedAt" in given:
        shown["updatedAt"] = given["updatedAt"] if _current(fact) else _text_of(fact.updated_at)
    return shown | ({"sourceError": fact.source_error} if fact.source_error else {})


def _fact_in(stated: Mapping[str, Any]) -> DocumentFact:
    named, given = stated.get("id") or "", stated.get("given", {})
    our_id = parse_uuid(named)
    return DocumentFact(
        content=stated["content"],
        category=_category_of({"category": stated["category"]} | given),
        confidence=stated["confidence"],
        id=our_id,
        # An id like ours is never another's: somebody who has it from a document would name a fact of ours by it.
        external_id="" if our_id and our_id.version == OUR_VERSION else named,
        stated_at=_moment(stated.get("createdAt") or ""),
        source_error=stated.get("sourceError") or "",
        given=given,
    )


def _category_of(given: Mapping[str, Any]) -> str:
    """Ours for the document's; DeerFlow keeps the name of a category that it does not know as an extension."""
    for name in (given["category"], given.get("categoryExtension")):
        folded = name.strip().lower() if isinstance(name, str) else "other"
        if folded in _CATEGORIES:
            return _CATEGORIES[folded]
        if folded in Category.values and folded != Category.OTHER:
            return folded
    return Category.OTHER


def _moment(text: str) -> datetime | None:
    """A time that another program wrote. One that cannot be parsed counts as none, because it decides nothing."""
    try:
        return Moment().to_internal_value(text) if text else None
    except serializers.ValidationError:
        return None


def _text_of(moment: datetime | None) -> str:
    return str(_MOMENT.to_representation(moment)) if moment else ""
