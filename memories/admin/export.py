"""Lists as CSV files: streamed row by row, no more than MOST, with nothing that a spreadsheet would run."""

import re
import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from defusedcsv import csv  # type: ignore[import-untyped]  # it has no types
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone

from memories import curation
from memories.admin.reach import tenants_of
from memories.admin.saved_filters import narrowed
from memories.audit import Actor
from memories.models import (
    APIKey,
    AuditEvent,
    DecayPass,
    EndUser,
    Episode,
    ExtractionRun,
    Fact,
    PrivacyCase,
    Session,
    Tenant,
)

PERMISSION = "memories.export_tenant"
MOST = 10_000
# What is read from the database at a time.
CHUNK = 500
# Spreadsheets look past white space and fold full-width signs; defusedcsv sees a plain sign at the start alone.
_SLY = re.compile(r"\s+[-+=@|%]|[\t\r\n]|\s*[＝＋－＠｜％]")
_OF_PERSON = ("id", "tenant__slug", "end_user__external_id")
# The columns of each list's file, by their names in our models; a list that is not here cannot be exported.
COLUMNS: dict[type[Model], tuple[str, ...]] = {
    EndUser: (
        *("id", "tenant__slug", "external_id", "display_name", "language", "time_zone", "capture", "serve"),
        *("restricted_at", "created_at", "last_seen_at"),
    ),
    Fact: (
        *(*_OF_PERSON, "agent_id", "content", "category", "status", "confidence", "importance", "trust", "tags"),
        *("pinned", "locked", "binding", "scope", "mentions", "created_at", "expires_at", "forget_at"),
    ),
    Episode: (
        *(*_OF_PERSON, "session_id", "summary", "status", "importance", "quality", "pinned"),
        *("first_number", "last_number", "ended_at", "forget_at"),
    ),
    Session: (
        *(*_OF_PERSON, "external_id", "agent_id", "turn_count", "token_count", "created_at", "last_turn_at"),
        *("ended_at", "queue__due_at", "queue__parked_at", "queue__failure"),
    ),
    ExtractionRun: (
        *(*_OF_PERSON, "session_id", "first_number", "last_number", "status", "attempt", "extractor", "calls"),
        *("prompt_tokens", "completion_tokens", "cost", "failure", "started_at", "finished_at"),
    ),
    # Who asked, and in which words, is in no file.
    PrivacyCase: (
        *("id", "tenant__slug", "type", "state", "asked_by", "received_at", "due_at", "verified_at", "scoped_at"),
        *("approved_at", "held_at", "extended_at", "refusal", "started_at", "attempts", "failure", "completed_at"),
    ),
    DecayPass: ("id", "tenant__slug", "state", "trigger", "counts", "started_at"),
    APIKey: (
        *("id", "tenant__slug", "name", "prefix", "scopes", "created_at", "expires_at", "revoked_at"),
        "last_used_at",
    ),
    Tenant: ("id", "slug", "name", "time_zone", "capture", "serve", "offboarded_at", "created_at"),
    AuditEvent: (
        *("id", "created_at", "tenant_uuid", "actor_kind", "actor_id", "verb", "object_type", "object_id"),
        *("request_id", "counts"),
    ),
}


def may(page: Any, request: HttpRequest) -> bool:
    return page.model in COLUMNS and page.has_view_permission(request) and request.user.has_perm(PERMISSION)


def answer(page: Any, request: HttpRequest, *, actor: Actor) -> HttpResponseBase:
    """The list under its filters, as a file; the search comes in the body and so in no log of addresses."""
    if not may(page, request):
        raise PermissionDenied
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    try:
        chosen = narrowed(page, request)
    except IncorrectLookupParameters:
        return HttpResponse(status=400)
    columns, now = COLUMNS[page.model], timezone.now()
    count = min(chosen.result_count, MOST)
    only = tenants_of(request.user)[:2]
    one = only[0] if len(only) == 1 else None
    export_id = curation.note_export(model=page.model, rows=count, tenant=one, actor=actor, now=now)
    rows = chosen.queryset.values_list(*columns)[:MOST].iterator(chunk_size=CHUNK)
    return _file(lines(columns, rows), _name(page, export_id, cut=chosen.result_count > MOST))


def lines(columns: Iterable[str], rows: Iterable[tuple[Any, ...]]) -> Iterator[str]:
    """The lines of the file, its head first."""
    written = csv.writer(_Echo())
    # So that spreadsheets read Chinese for what it is.
    yield "\ufeff" + written.writerow([column.replace("__", "_") for column in columns])
    for row in rows:
        yield written.writerow([_plain(value) for value in row])


class _Echo:
    """A file that hands back what is written to it."""

    def write(self, text: str) -> str:
        return text


def _plain(value: Any) -> Any:
    """Times in UTC as ISO 8601, lists and mappings as their parts; a formula that defusedcsv lets through as text."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, dict):
        return "; ".join(f"{name}={part}" for name, part in value.items())
    text = "; ".join(map(str, value)) if isinstance(value, list) else value
    return f"'{text}" if isinstance(text, str) and _SLY.match(text) else text


def _file(body: Iterator[str], name: str) -> StreamingHttpResponse:
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return StreamingHttpResponse(body, content_type="text/csv; charset=utf-8", headers=headers)


def _name(page: Any, export_id: uuid.UUID, *, cut: bool) -> str:
    """What it is of, whether it was cut, and by which id the audit trail knows it; nothing personal."""
    return f"{page.opts.model_name}{f'-first-{MOST}' if cut else ''}-{export_id}.csv"
