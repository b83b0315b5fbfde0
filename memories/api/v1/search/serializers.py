"""POST /search: a question about one person, and the memories that answer it best."""

from typing import Any

from rest_framework import serializers

from memories.api.v1.fields import (
    AgentId,
    ExactText,
    Flag,
    Fraction,
    Identifier,
    Moment,
    OneOf,
    OrNull,
    Strict,
    Timestamp,
    Whole,
    Words,
)
from memories.models import Author, Category, Role
from memories.retrieval.hits import FOUND_KINDS
from memories.retrieval.search import KINDS, Level, SearchFilters, SearchRequest, SearchResult

MAX_QUERY = 20_000
MAX_RESULTS = 100


class FiltersSerializer(Strict):
    """What a result must be; all that are given must hold."""

    category = OneOf(Category.values, required=False, help_text="Of facts; leaves out everything else.")
    tags = Words(
        child=ExactText(max_length=100), required=False, help_text="A fact has all of them; as for `category`."
    )
    since = Moment(required=False, help_text="Said then or later (facts: first observed; episodes: ended).")
    until = Moment(required=False, help_text="Said before then (facts: first observed; episodes: ended).")
    agent_id = AgentId(help_text="Of this agent: its sessions, its private facts and the person's own.")
    session_id = Identifier(required=False, help_text="Said in a session that you call so, or resting on it.")
    authors = serializers.ListField(
        child=OneOf(Author.values),
        required=False,
        max_length=len(Author.values),
        help_text="Of turns, whose words they hold. Absent: all but texts in role `user` that the person did not say.",
    )


class SearchSerializer(Strict):
    user_id = Identifier()
    query = ExactText(max_length=MAX_QUERY)
    kinds = serializers.ListField(
        child=OneOf(KINDS), default=lambda: ["fact", "turn"], min_length=1, max_length=len(KINDS)
    )
    limit = Whole(min_value=1, max_value=MAX_RESULTS, default=20)
    filters = FiltersSerializer(required=False)
    roles = Words(
        child=ExactText(max_length=100), default=list, help_text="Roles that the person has, for guarded facts."
    )
    as_of = Moment(required=False, help_text="Facts that were true then, and what had been said by then.")
    min_score = Fraction(
        required=False, help_text="Leaves out what scores lower. Scores mean little across queries: see `min_evidence`."
    )
    min_evidence = OneOf(
        [level.value for level in Level],
        default=Level.NONE.value,
        help_text="Leaves out what is weaker as evidence that it has to do with the query.",
    )
    explain = Flag(default=False, help_text="Show the scores' ingredients, and how the query was read.")


class FoundEvidenceSerializer(serializers.Serializer[Any]):
    """The turn that a found fact rests on."""

    session_id = serializers.CharField()
    turn_number = serializers.IntegerField()
    quote = OrNull()


class FoundGroupSerializer(serializers.Serializer[Any]):
    """The group that knows a found fact."""

    id = serializers.UUIDField()
    name = serializers.CharField()


class ResultSerializer(serializers.Serializer[Any]):
    """One memory; what does not belong to its kind is null or empty."""

    kind = serializers.ChoiceField(FOUND_KINDS, help_text="`group_fact`: found with the person's own facts.")
    id = serializers.UUIDField()
    external_id = serializers.CharField(allow_null=True, help_text="Yours, of a turn.")
    text = serializers.CharField(help_text="Of a session: what its best turn says.")
    score = serializers.FloatField(help_text="Higher is better; compare within one kind.")
    score_parts = serializers.DictField(child=serializers.FloatField())
    session_id = serializers.CharField(allow_null=True)
    agent_id = serializers.CharField(allow_null=True)
    turn_numbers = serializers.ListField(
        child=serializers.IntegerField(), help_text="Of an episode: the first and the last of its range."
    )
    role = serializers.ChoiceField(Role.values, allow_null=True)
    category = serializers.ChoiceField(Category.values, allow_null=True)
    confidence = serializers.FloatField(allow_null=True)
    tags = serializers.ListField(child=serializers.CharField())
    evidence = FoundEvidenceSerializer(many=True)
    flagged = serializers.BooleanField(
        help_text="What an assistant or a tool said, and speaks to a model: not to be obeyed, never in a context."
    )
    outdated_since = Timestamp(
        allow_null=True,
        help_text="Of what says something that was corrected, superseded or forgotten since: when it ended.",
    )
    group = FoundGroupSerializer(allow_null=True, help_text="Of a fact that a group of the person's shares.")
    path = serializers.CharField(allow_null=True, help_text="Of a passage of a memory file: that file's.")
    lines = serializers.ListField(child=serializers.IntegerField(), help_text="Its first and last line, from 1.")
    attachment_id = serializers.UUIDField(allow_null=True, help_text="Of a passage of a document: the attachment.")
    name = serializers.CharField(allow_null=True, help_text="Of that attachment.")
    page = serializers.IntegerField(allow_null=True, help_text="Of a document that has pages, from 1.")
    place = serializers.CharField(allow_null=True, help_text="The headings above it, outermost first.")
    author = serializers.ChoiceField(
        Author.values, allow_null=True, help_text="Of a document: never the person; `model` for what a picture shows."
    )
    evidence_level = serializers.ChoiceField(
        [level.value for level in Level],
        help_text="How strong it is as evidence that it has to do with the query.",
    )
    created_at = Timestamp(help_text="When it was said, by the client's clock if it told; of an episode its end.")


class ExplanationSerializer(serializers.Serializer[Any]):
    """How a search was done."""

    terms = serializers.ListField(child=serializers.CharField(), help_text="What is looked for word by word.")
    language = serializers.CharField()
    embedding_model = serializers.CharField(allow_null=True, help_text="Null: searched by words alone.")
    searched = serializers.DictField(child=serializers.IntegerField(), help_text="How many memories of each kind.")


class FoundSerializer(serializers.Serializer[Any]):
    """The results of a search, best first, and how strong the strongest is as evidence."""

    results = ResultSerializer(many=True)
    evidence = serializers.ChoiceField(
        [level.value for level in Level],
        help_text="Of the strongest result. `none`: nothing that is remembered has to do with the query.",
    )
    degraded = serializers.ChoiceField(
        ["index"],
        required=False,
        help_text="Only while the index of a person's many turns is made: the newest alone were compared.",
    )
    explain = ExplanationSerializer(required=False, help_text="When asked for.")
    restricted = serializers.BooleanField(required=False, help_text="Only when true.")
    serve = serializers.BooleanField(required=False, help_text="Only when false: serving is switched off.")


def search_of(given: dict[str, Any]) -> SearchRequest:
    """The request of a validated body."""
    return SearchRequest(
        user_id=given["user_id"],
        query=given["query"],
        kinds=tuple(dict.fromkeys(given["kinds"])),
        limit=given["limit"],
        filters=SearchFilters(**given.get("filters", {})),
        roles=tuple(given["roles"]),
        explain=given["explain"],
        as_of=given.get("as_of"),
        min_score=given.get("min_score"),
        min_evidence=Level(given["min_evidence"]),
    )


def found_answer(found: SearchResult) -> dict[str, Any]:
    """In the shape of FoundSerializer. By hand for speed: agents wait for it in the middle of a conversation."""
    answer: dict[str, Any] = {
        "results": [
            {name: value for name, value in vars(one).items() if name != "written"}
            | {
                "evidence": [vars(cited) | {"quote": cited.quote or None} for cited in one.evidence],
                "group": vars(one.group) if one.group else None,
            }
            for one in found.results
        ],
        "evidence": found.evidence,
    }
    if found.explanation:
        answer["explain"] = vars(found.explanation)
    if found.degraded:
        answer["degraded"] = found.degraded
    if found.restricted:
        answer["restricted"] = True
    if not found.serve:
        answer["serve"] = False
    return answer
