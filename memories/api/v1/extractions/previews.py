"""POST /extractions/preview: a dry run of extraction, on a session or on given messages. Nothing is stored."""

from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from memories.api.bound import Bound
from memories.api.endpoints import Endpoint
from memories.api.schema import operation
from memories.api.v1.extractions.serializers import RangeSerializer, TokensSerializer
from memories.api.v1.fields import ExactText, Flag, Identifier, OrNull, Whole
from memories.api.v1.sessions.serializers import SessionNameSerializer
from memories.api.v1.turns.serializers import MessageSerializer, messages_of
from memories.exceptions import NotFound
from memories.extraction import preview
from memories.extraction.preview import Answered, Preview, Source, Trial
from memories.models import EndUser, Scope, Session

_LAST_TURN = 2**31 - 1


class PreviewInputSerializer(SessionNameSerializer):
    session_id = Identifier(required=False, allow_null=True, help_text="Of a stored session; or give `messages`.")
    messages = serializers.ListField(
        child=MessageSerializer(),
        required=False,
        allow_null=True,
        min_length=1,
        max_length=preview.MOST_MESSAGES,
        help_text="As of POST /turns. They are not stored, and the person need not exist.",
    )
    after = Whole(
        required=False,
        allow_null=True,
        min_value=0,
        max_value=_LAST_TURN,
        help_text="Of a session: the batch begins beyond this turn. Absent: what waits, else the first.",
    )
    model = ExactText(
        required=False,
        allow_null=True,
        max_length=preview.LONGEST_MODEL,
        help_text="Another model at the endpoint of the tenant's calls. Absent: theirs.",
    )
    guidance = ExactText(
        required=False,
        allow_null=True,
        allow_blank=True,
        max_length=preview.LONGEST_GUIDANCE,
        help_text="In the place of the tenant's and the agent's guidance. Absent: theirs.",
    )
    ask = Flag(default=True, help_text="Ask the model. false: the prompt alone, which costs nothing.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if bool(attrs.get("session_id")) == bool(attrs.get("messages")):
            raise ValidationError({"messages": ["Give either a session_id or messages."]}, code="either")
        attrs["posted"] = messages_of(attrs.get("messages") or [], "/messages")
        return attrs


class PromptMessageSerializer(serializers.Serializer[Any]):
    """A message of a prompt, letter by letter."""

    role = serializers.CharField()
    content = serializers.CharField()


class PreviewedFactSerializer(serializers.Serializer[Any]):
    """What would become of a fact; `before` is the text that a known one had."""

    verb = serializers.CharField(help_text="extract: it is new; reinforce, refine, supersede, remove, …")
    content = serializers.CharField()
    before = OrNull(help_text="The text that a known fact had.")
    category = serializers.CharField()
    status = serializers.CharField(help_text="As of a fact.")
    trust = serializers.CharField(help_text="As of a fact.")
    confidence = serializers.FloatField()
    reasons = serializers.ListField(child=serializers.CharField(), help_text="Why it would wait for review.")


class PreviewedRefusalSerializer(serializers.Serializer[Any]):
    """An item of the model's answer that would not be kept, and the code of the reason."""

    content = serializers.CharField(help_text="As the model wrote it; empty for none.")
    reason = serializers.CharField()


class PreviewedSectionSerializer(serializers.Serializer[Any]):
    """A section of the profile that would be written, or `proposed`: it would wait for review."""

    section = serializers.CharField()
    text = serializers.CharField()
    proposed = serializers.BooleanField(source="is_proposed", help_text="It would wait for review.")


class PreviewedAnswerSerializer(serializers.Serializer[Answered]):
    """What would become of the answer; nothing of it is stored."""

    facts = PreviewedFactSerializer(many=True)
    refused = PreviewedRefusalSerializer(many=True)
    profile = PreviewedSectionSerializer(source="sections", many=True)
    outcome = serializers.DictField(child=serializers.IntegerField(), help_text="Counts, as of a run.")
    refusals = serializers.DictField(child=serializers.IntegerField(), help_text="Counts by reason, as of a run.")
    calls = serializers.IntegerField()
    tokens = TokensSerializer(source="*")
    cost = serializers.FloatField(allow_null=True, help_text="US dollars, where the price is known.")
    failure = OrNull(help_text="Code of the failed call; then there is nothing else.")


class PreviewSerializer(serializers.Serializer[Preview]):
    """A dry run of extraction: the exact prompt, and the answer if the model was asked."""

    range = RangeSerializer(source="*")
    extractor = serializers.CharField()
    prompt_version = serializers.CharField()
    prompt = PromptMessageSerializer(source="messages", many=True, help_text="Empty: nothing of the range is read.")
    answer = PreviewedAnswerSerializer(source="answered", allow_null=True, help_text="null unless the model was asked.")


class ExtractionPreviewView(Endpoint):
    @operation(
        "previewExtraction",
        "Try extraction: the exact prompt, and what would become of the answer",
        description=(
            "Of a session or of given messages, with another model or guidance. Nothing is stored but the tokens, for "
            "the daily caps, and an event of the audit trail without any text. A failing model is a part of the "
            "answer. Needs `read`, too."
        ),
        scope=Scope.WRITE,
        bound=Bound.NAMED,
        request=PreviewInputSerializer,
        answers={200: PreviewSerializer},
        problems=(404, 409, 413, 423, 503),
    )
    def post(self, request: Request) -> Response:
        if Scope.READ not in self.caller.key.scopes:
            raise PermissionDenied(f"This key lacks the scope '{Scope.READ}'.", code="missing_scope")
        given = self.body(PreviewInputSerializer)
        source = self._source(given)
        trial = Trial(given.get("model") or "", given.get("guidance"))
        if given["ask"]:
            shown = preview.run(source=source, trial=trial, actor=self.actor, now=self.now)
        else:
            shown = preview.show(source=source, trial=trial, now=self.now)
        return Response(PreviewSerializer(shown).data)

    def _source(self, given: dict[str, Any]) -> Source:
        agent_id = given.get("agent_id") or ""
        if given["posted"]:
            return Source(self.tenant, messages=given["posted"], user_id=given["user_id"], agent_id=agent_id)
        people = EndUser.objects.called(self.tenant, given["user_id"])
        sessions = Session.objects.select_related("tenant", "end_user__tenant").filter(end_user__in=people)
        session = sessions.filter(external_id=given["session_id"], agent_id=agent_id).first()
        if session is None:
            raise NotFound
        return Source(self.tenant, session=session, after=given.get("after"))
