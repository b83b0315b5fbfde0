"""Lists as CSV files: streamed, at most MOST rows, without formulas that a spreadsheet would run."""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from defusedcsv import csv  # type: ignore[import-untyped]  # it has no types
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone

from memories import models
from memories.admin.access import fresh
from memories.admin.access.tenant_scope import tenants_of
from memories.admin.lists.change_list import HubChangeList
from memories.admin.lists.saved_filters import narrowed
from memories.audit import Actor
from memories.curation.exports import note_export
from memories.models import Operator, Tenant

PERMISSION = "memories.export_tenant"
MOST = 10_000
# Rows fetched at a time.
CHUNK = 500
# Spreadsheets skip white space and fold full-width signs. defusedcsv only sees a plain sign at the start.
_FORMULA = re.compile(r"\s+[-+=@|%]|[\t\r\n]|\s*[＝＋－＠｜％]")
_OF_PERSON = ("id", "tenant__slug", "end_user__external_id")
# Model → fields of its file. Other models cannot be exported.
COLUMNS: dict[type[Model], tuple[str, ...]] = {
    models.EndUser: (
        *("id", "tenant__slug", "external_id", "display_name", "language", "time_zone", "capture", "serve"),
        *("restricted_at", "created_at", "last_seen_at"),
    ),
    models.Fact: (
        *(*_OF_PERSON, "agent_id", "content", "category", "status", "confidence", "importance", "trust", "tags"),
        *("pinned", "locked", "binding", "scope", "mentions", "created_at", "expires_at", "forget_at"),
    ),
    models.Episode: (
        *(*_OF_PERSON, "session_id", "summary", "status", "importance", "quality", "pinned"),
        *("first_number", "last_number", "ended_at", "forget_at"),
    ),
    models.Session: (
        *(*_OF_PERSON, "external_id", "agent_id", "turn_count", "token_count", "created_at", "last_turn_at"),
        *("ended_at", "queue__due_at", "queue__parked_at", "queue__failure"),
    ),
    models.ExtractionRun: (
        *(*_OF_PERSON, "session_id", "first_number", "last_number", "status", "attempt", "extractor", "calls"),
        *("prompt_tokens", "completion_tokens", "cost", "failure", "started_at", "finished_at"),
    ),
    # Without the requester and the words of the request.
    models.PrivacyCase: (
        *("id", "tenant__slug", "type", "state", "asked_by", "received_at", "due_at", "verified_at", "scoped_at"),
        *("approved_at", "held_at", "extended_at", "refusal", "started_at", "attempts", "failure", "completed_at"),
    ),
    models.DecayPass: ("id", "tenant__slug", "state", "trigger", "counts", "started_at"),
    models.APIKey: (
        *(
            "id",
            "tenant__slug",
            "name",
            "prefix",
            "scopes",
            "agent_id",
            "writes_as",
            "speaks_for_user",
            "memory_of",
            "created_at",
        ),
        *("expires_at", "revoked_at", "last_used_at"),
    ),
    models.Tenant: ("id", "slug", "name", "time_zone", "capture", "serve", "offboarded_at", "created_at"),
    models.Agent: ("id", "tenant__slug", "agent_id", "extraction", "recall", "created_at"),
    models.AuditEvent: (
        *("id", "created_at", "tenant_uuid", "actor_kind", "actor_id", "verb", "object_type", "object_id"),
        *("request_id", "counts"),
    ),
}


def can_export(page: Any, request: HttpRequest) -> bool:
    return page.model in COLUMNS and page.has_view_permission(request) and request.user.has_perm(PERMISSION)


def answer(page: Any, request: HttpRequest, *, actor: Actor) -> HttpResponseBase:
    """The filtered list as a CSV file."""
    found = requested_list(page, request)
    if isinstance(found, HttpResponse):
        return found
    count, is_cut = min(found.result_count, MOST), found.result_count > MOST
    export_id = note_export(
        model=page.model, rows=count, tenant=sole_tenant(request.user), actor=actor, now=timezone.now()
    )
    columns = COLUMNS[page.model]
    rows = found.queryset.values_list(*columns)[:MOST].iterator(chunk_size=CHUNK)
    # The audit trail has this id. The name holds nothing personal.
    name = f"{page.opts.model_name}{f'-first-{MOST}' if is_cut else ''}-{export_id}.csv"
    return download(lines(columns, rows), name=name, content_type="text/csv; charset=utf-8")


def requested_list(page: Any, request: HttpRequest) -> HubChangeList | HttpResponse:
    """The list to export, or the response that refuses it. Errors: PermissionDenied.

    The search comes in the body, so that no log of addresses keeps it.
    """
    if not can_export(page, request):
        raise PermissionDenied
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    if challenge := fresh.required(request):
        return challenge
    try:
        return narrowed(page, request)
    except IncorrectLookupParameters:
        return HttpResponse(status=400)


def sole_tenant(operator: Operator | AnonymousUser) -> Tenant | None:
    """The operator's tenant if there is exactly one: the audit event is then that tenant's."""
    tenants = tenants_of(operator)[:2]
    return tenants[0] if len(tenants) == 1 else None


def lines(columns: Iterable[str], rows: Iterable[tuple[Any, ...]]) -> Iterator[str]:
    """The lines of the CSV file, headings first."""
    writer = csv.writer(_Echo())
    # With the byte order mark spreadsheets read Chinese correctly.
    yield "\ufeff" + writer.writerow([column.replace("__", "_") for column in columns])
    for row in rows:
        yield writer.writerow([_plain(value) for value in row])


class _Echo:
    """A file that returns what is written to it."""

    def write(self, text: str) -> str:
        return text


def _plain(value: Any) -> Any:
    """Times as ISO 8601 in UTC, lists and mappings joined. Formulas that defusedcsv misses get a quote in front."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, dict):
        return "; ".join(f"{name}={part}" for name, part in value.items())
    text = "; ".join(map(str, value)) if isinstance(value, list) else value
    return f"'{text}" if isinstance(text, str) and _FORMULA.match(text) else text


def download(body: Iterator[str], *, name: str, content_type: str) -> StreamingHttpResponse:
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return StreamingHttpResponse(body, content_type=content_type, headers=headers)
