"""The OpenAPI document beyond the serializers: scopes, the key, and the problem answers of each operation."""

import threading
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, ClassVar, TypeVar, cast

from django.utils import translation
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.plumbing import get_lib_doc_excludes
from drf_spectacular.renderers import OpenApiJsonRenderer, OpenApiJsonRenderer2, OpenApiYamlRenderer
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from drf_spectacular.views import SpectacularAPIView
from rest_framework import serializers

from memories.api import idempotency
from memories.api.bound import Bound, NamedRow
from memories.api.errors import MEDIA_TYPE
from memories.api.v1.fields import Strict
from memories.models import Scope

View = TypeVar("View", bound=Callable[..., Any])
Status = HTTPStatus

WITH_KEY = (Status.CONFLICT, Status.GONE, Status.UNPROCESSABLE_ENTITY)
ALWAYS = (
    Status.BAD_REQUEST,
    Status.UNAUTHORIZED,
    Status.FORBIDDEN,
    Status.NOT_ACCEPTABLE,
    Status.TOO_MANY_REQUESTS,
    Status.SERVICE_UNAVAILABLE,
)
WITH_BODY = (Status.REQUEST_ENTITY_TOO_LARGE, Status.UNSUPPORTED_MEDIA_TYPE)
MEANINGS: Mapping[int, str] = {
    Status.BAD_REQUEST: "The input is not valid; `errors` says where.",
    Status.UNAUTHORIZED: "The key is missing, not known, expired or revoked.",
    Status.FORBIDDEN: "The key lacks the scope, is for another person or agent (`key_bound`), or is of the other kind.",
    Status.NOT_FOUND: "The object does not exist.",
    Status.NOT_ACCEPTABLE: "The Accept header does not take application/json.",
    Status.CONFLICT: "The current state of the object does not allow this, or the Idempotency-Key is still in use.",
    Status.GONE: "The person was erased and is not taken again; or an export was downloaded before, or has expired.",
    Status.PRECONDITION_FAILED: "The object has another version than If-Match names.",
    Status.REQUEST_ENTITY_TOO_LARGE: "The body is over 10 MB, a message over 1 MB, or the answer would be too large.",
    Status.UNSUPPORTED_MEDIA_TYPE: "The body is not application/json in UTF-8.",
    Status.UNPROCESSABLE_ENTITY: "The Idempotency-Key came with another request before.",
    Status.LOCKED: "The person is restricted: nothing is stored or served.",
    Status.TOO_MANY_REQUESTS: "The key made too many requests; try again after `Retry-After` seconds.",
    Status.SERVICE_UNAVAILABLE: "The hub is busy, or the database cannot answer; try again after `Retry-After` "
    "seconds.",
}


_making = threading.Lock()


class DocumentOnce(SchemaGenerator):
    """Makes the document once a process. That takes seconds of the processor, and anybody may ask for it.

    drf-spectacular loads its extensions meanwhile, and fails in a thread that comes upon one half loaded.
    """

    _document: ClassVar[dict[str, Any]] = {}

    def get_schema(self, request: object = None, public: bool = True) -> dict[str, Any]:
        with _making, translation.override("en"):
            if not self._document:
                self._document.update(super().get_schema(request=None, public=True))  # type: ignore[no-untyped-call]
            return self._document


class YamlOnce(OpenApiYamlRenderer):
    """Writes the document as YAML once a process. That takes a third of a second of the processor."""

    _written: ClassVar[tuple[Any, bytes]] = (None, b"")

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        document, written = YamlOnce._written
        if data is not document:
            written = super().render(data, accepted_media_type, renderer_context)  # type: ignore[no-untyped-call]
            # A problem is written anew each time.
            if data is DocumentOnce._document:
                YamlOnce._written = (data, written)
        return written


class PlainYamlOnce(YamlOnce):
    media_type = "application/yaml"


class DocumentView(SpectacularAPIView):
    """The document for everybody."""

    authentication_classes = ()
    generator_class = DocumentOnce
    renderer_classes = [YamlOnce, PlainYamlOnce, OpenApiJsonRenderer, OpenApiJsonRenderer2]


class FaultSerializer(serializers.Serializer[Any]):
    pointer = serializers.CharField(help_text="JSON pointer into the body, or the name of a parameter.")
    code = serializers.CharField()
    detail = serializers.CharField()


class ProblemSerializer(serializers.Serializer[Any]):
    """A problem document (RFC 9457)."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    instance = serializers.CharField(help_text="The path of the request, without its query.")
    code = serializers.CharField(help_text="Stable; made for programs.")
    request_id = serializers.CharField(help_text="As in X-Request-ID.")
    errors = FaultSerializer(many=True)  # type: ignore[assignment]
    existing_id = serializers.UUIDField(required=False, help_text="Of a duplicate: the fact that says the same.")
    category = serializers.CharField(
        required=False, help_text="Of a text that the content policy forbids: the category that it falls under."
    )
    policy_version = serializers.IntegerField(required=False, help_text="The version of the policy that forbids it.")
    occurrences = serializers.IntegerField(required=False, help_text="Of an edit: how often the file has the text.")
    newline_only = serializers.BooleanField(
        required=False, help_text="Of an edit: without its last newline the text is the end of the file."
    )
    occurrences_without_newline = serializers.IntegerField(required=False, help_text="How often it is there then.")
    total_lines = serializers.IntegerField(required=False, help_text="Of a file that is shorter than the offset.")


class KeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "memories.api.authentication.KeyAuthentication"
    name = ["key", "keyAlone"]
    described = "An API key: `mh_<prefix>_<secret>`."

    def get_security_definition(self, auto_schema: Any) -> list[dict[str, str]]:
        return [
            {"type": "http", "scheme": "bearer", "description": self.described},
            {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": self.described},
        ]

    def get_security_requirement(self, auto_schema: Any) -> list[dict[str, list[str]]]:
        """Either of the two."""
        return [{name: []} for name in self.name]


class ManagementScheme(KeyScheme):  # type: ignore[no-untyped-call]
    target_class = "memories.api.authentication.ManagementAuthentication"
    name = ["managementKey", "managementKeyAlone"]
    described = "A management key: `mhm_<prefix>_<secret>`."


def operation(
    operation_id: str,
    summary: str,
    *,
    scope: Scope,
    bound: Bound | NamedRow,
    answers: Mapping[Any, Any],
    request: Any = None,
    parameters: Sequence[Any] = (),
    problems: Sequence[int] = (),
    description: str = "",
    idempotent: bool = False,
) -> Callable[[View], View]:
    """Declare a view's method as an operation: its scope, its policy for bound keys, and its part of the schema.

    `parameters` are serializers of query parameters, which the view reads, and headers. An operation without such a
    serializer takes no parameters. `idempotent` operations take an Idempotency-Key.
    `answers` are by status, or by status and media type.
    """

    def declare(view: View) -> View:
        key_headers = _idempotency_key(*answers) if idempotent else ()
        view = cast(View, idempotency.once(operation_id, view)) if idempotent else view
        view.scope = scope  # type: ignore[attr-defined]  # read by HasScope
        view.bound = bound  # type: ignore[attr-defined]  # read by Endpoint
        return _described(
            view,
            operation_id,
            summary,
            f"{description} Needs the scope `{scope}`.".strip(),
            answers=answers,
            request=request,
            parameters=[*parameters, *key_headers],
            problems=[*problems, *(WITH_KEY if idempotent else ())],
        )

    return declare


def management(
    operation_id: str,
    summary: str,
    *,
    answers: Mapping[int, Any],
    request: Any = None,
    parameters: Sequence[Any] = (),
    problems: Sequence[int] = (),
    description: str = "",
) -> Callable[[View], View]:
    """Declare a view's method as an operation for management keys."""
    described = f"{description} Needs a management key.".strip()
    given: dict[str, Any] = {"answers": answers, "request": request, "parameters": parameters, "problems": problems}
    return lambda view: _described(view, operation_id, summary, described, **given)


def _described(
    view: View,
    operation_id: str,
    summary: str,
    description: str,
    *,
    answers: Mapping[Any, Any],
    request: Any,
    parameters: Sequence[Any],
    problems: Sequence[int],
) -> View:
    view.takes_parameters = any(isinstance(one, type) for one in parameters)  # type: ignore[attr-defined]
    view.takes_body = request  # type: ignore[attr-defined]  # read by the parser
    refused = sorted({*ALWAYS, *problems, *(WITH_BODY if request else ())})
    problem_answers = {
        (status, MEDIA_TYPE): OpenApiResponse(ProblemSerializer, description=MEANINGS[status]) for status in refused
    }
    request_id = OpenApiParameter(
        "X-Request-ID",
        OpenApiTypes.STR,
        OpenApiParameter.HEADER,
        description="Yours when you sent one, else one of ours.",
        response=[status for status in (*answers, *refused) if isinstance(status, int)],
    )
    return extend_schema(
        operation_id=operation_id,
        summary=summary,
        description=description,
        request=request,
        parameters=[*parameters, request_id],
        responses={**answers, **problem_answers},
    )(view)


def if_match() -> OpenApiParameter:
    """The optional request header that protects somebody else's change from being overwritten."""
    detail = 'The version that you read, as in the ETag: `"3"`.'
    return OpenApiParameter("If-Match", OpenApiTypes.STR, OpenApiParameter.HEADER, description=detail)


def if_none_match() -> OpenApiParameter:
    """The optional request header of a PUT that only makes."""
    detail = "`*`: only make it; what is there already is refused."
    return OpenApiParameter("If-None-Match", OpenApiTypes.STR, OpenApiParameter.HEADER, description=detail)


def etag(*statuses: int) -> OpenApiParameter:
    """The answer header with the object's version."""
    return OpenApiParameter("ETag", OpenApiTypes.STR, OpenApiParameter.HEADER, response=list(statuses))


def _idempotency_key(*statuses: int) -> tuple[OpenApiParameter, OpenApiParameter]:
    """The request header, and the answer header that marks a replay."""
    return (
        OpenApiParameter(
            idempotency.HEADER,
            OpenApiTypes.STR,
            OpenApiParameter.HEADER,
            description="Yours, 1-255 visible characters. The same request again gets the first answer, byte for byte, "
            "for 24 hours.",
        ),
        OpenApiParameter(
            idempotency.REPLAYED,
            OpenApiTypes.STR,
            OpenApiParameter.HEADER,
            description="`true`: this is the first answer to this key; nothing was done again.",
            enum=["true"],
            response=list(statuses),
        ),
    )


def without_words() -> list[type]:
    """Classes whose docstrings describe no schema: what is said of every input says nothing of one."""
    return [*get_lib_doc_excludes(), Strict]  # type: ignore[no-untyped-call]
