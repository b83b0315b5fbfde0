"""/memory: one person's memory as a document of DeerFlow's shape, out and in."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from rest_framework import serializers

from memories.api.v1.facts.serializers import FactQuery
from memories.api.v1.fields import CleanText, ExactText, Identifier, Moment, Share, StatedByField
from memories.curation.statements.documents import IMPORTED_SOURCE, DocumentFact, HeldParts
from memories.exceptions import InvalidInput
from memories.models import Category, Fact, ProfileSection, Section
from memories.models.ids import parse_uuid

VERSION = "1.0"
MANUAL = "manual"
MAX_FACTS = 5000
DEFAULT_CONFIDENCE = 0.5
_MOMENT = serializers.DateTimeField()
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
    updatedAt = serializers.CharField(required=False, allow_blank=True, allow_null=True)  # noqa: N815


class UserPartsSerializer(Lenient):
    workContext = PartSerializer(required=False)  # noqa: N815
    personalContext = PartSerializer(required=False)  # noqa: N815
    topOfMind = PartSerializer(required=False)  # noqa: N815


class HistoryPartsSerializer(Lenient):
    recentMonths = PartSerializer(required=False)  # noqa: N815
    earlierContext = PartSerializer(required=False)  # noqa: N815
    longTermBackground = PartSerializer(required=False)  # noqa: N815


class DocumentFactSerializer(Lenient):
    id = ExactText(required=False, allow_null=True, allow_blank=True, max_length=255)
    content = CleanText(max_length=2000)
    category = ExactText(
        default=Category.CONTEXT.value, max_length=100, help_text="One that is not known counts as other."
    )
    confidence = Share(default=DEFAULT_CONFIDENCE)
    createdAt = ExactText(required=False, allow_null=True, allow_blank=True, max_length=255)  # noqa: N815
    source = ExactText(  # type: ignore[assignment]
        required=False, allow_null=True, allow_blank=True, max_length=255, help_text="The conversation that it is from."
    )
    sourceError = CleanText(  # noqa: N815
        required=False, allow_null=True, allow_blank=True, max_length=2000, help_text="Of a correction: what was wrong."
    )


class DocumentSerializer(Lenient):
    """A memory document; what is left out stays as it is."""

    version = serializers.CharField(default=VERSION)
    lastUpdated = serializers.CharField(required=False, allow_blank=True, allow_null=True)  # noqa: N815
    user = UserPartsSerializer(required=False)
    history = HistoryPartsSerializer(required=False)
    facts = serializers.ListField(child=DocumentFactSerializer(), required=False, max_length=MAX_FACTS)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs.keys().isdisjoint(("user", "history", "facts")):
            raise serializers.ValidationError("A memory document has user, history or facts.", code="empty")
        return attrs


class NamedDocumentSerializer(DocumentSerializer):
    user_id = Identifier(required=False, help_text="Here or in the query.")
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


def sections_of(document: Mapping[str, Any]) -> dict[str, str]:
    """The document's summaries by section of the profile. An empty summary empties the section."""
    parts = {section: document.get(part, {}).get(name, {}) for section, (part, name) in PLACES.items()}
    return {section: part["summary"] for section, part in parts.items() if "summary" in part}


def facts_of(document: Mapping[str, Any]) -> list[DocumentFact]:
    return [_fact_in(given) for given in document.get("facts", ())]


def pending_of(waiting: HeldParts) -> dict[str, Any]:
    """The answer's member that counts what waits; empty when nothing does."""
    counts = asdict(waiting)
    return {"pending": counts} if any(counts.values()) else {}


def document_of(sections: Iterable[ProfileSection], facts: Sequence[Fact]) -> dict[str, Any]:
    """The document of these sections and facts. The facts come with their evidence."""
    rows = {row.section: row for row in sections}
    moments = [row.updated_at for row in rows.values()] + [fact.updated_at for fact in facts]
    document: dict[str, Any] = {"version": VERSION, "lastUpdated": _text_of(max(moments, default=None))}
    for section, (part, name) in PLACES.items():
        row = rows.get(section)
        document.setdefault(part, {})[name] = {
            "summary": row.summary if row else "",
            "updatedAt": _text_of(row.updated_at if row else None),
        }
    return document | {"facts": [_fact_out(fact) for fact in facts]}


def _fact_out(fact: Fact) -> dict[str, Any]:
    # The first conversation that says it, by the caller's name; `manual` for a fact that somebody stated outright.
    cited = [evidence.session.external_id for evidence in fact.evidence.all()]
    imported = (fact.structured or {}).get(IMPORTED_SOURCE)
    shown = {
        "id": str(fact.pk),
        "content": fact.content,
        "category": fact.category,
        "confidence": fact.confidence,
        "createdAt": _text_of(fact.first_observed_at),
        "source": cited[0] if cited else str(imported or MANUAL),
    }
    return shown | ({"sourceError": fact.source_error} if fact.source_error else {})


def _fact_in(given: Mapping[str, Any]) -> DocumentFact:
    category = given["category"]
    return DocumentFact(
        content=given["content"],
        category=category if category in Category.values else Category.OTHER,
        confidence=given["confidence"],
        id=parse_uuid(given.get("id") or ""),
        said_at=_moment(given.get("createdAt") or ""),
        source=given.get("source") or "",
        source_error=given.get("sourceError") or "",
    )


def _moment(text: str) -> datetime | None:
    """A time that another program wrote. One that cannot be parsed counts as none, because it decides nothing."""
    try:
        return Moment().to_internal_value(text) if text else None
    except serializers.ValidationError:
        return None


def _text_of(moment: datetime | None) -> str:
    return str(_MOMENT.to_representation(moment)) if moment else ""
