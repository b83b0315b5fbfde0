"""Lists as CSV files: streamed, at most MOST rows, without formulas that a spreadsheet would run."""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from defusedcsv import csv  # type: ignore[import-untyped]  # it has no types
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone

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
# Of a list whose rows are of people.
OF_PERSON = ("id", "tenant__slug", "end_user__external_id")


def can_export(page: Any, request: HttpRequest) -> bool:
    return bool(page.csv_columns) and page.has_view_permission(request) and request.user.has_perm(PERMISSION)


def answer(page: Any, request: HttpRequest, *, actor: Actor) -> HttpResponseBase:
    """The filtered list as a CSV file."""
    found = requested_list(page, request)
    if isinstance(found, HttpResponse):
        return found
    count, is_cut = min(found.result_count, MOST), found.result_count > MOST
    export_id = note_export(
        model=page.model, rows=count, tenant=sole_tenant(request.user), actor=actor, now=timezone.now()
    )
    rows = found.queryset.values_list(*page.csv_columns)[:MOST].iterator(chunk_size=CHUNK)
    # The audit trail has this id. The name holds nothing personal.
    name = f"{page.opts.model_name}{f'-first-{MOST}' if is_cut else ''}-{export_id}.csv"
    return download(lines(page.csv_columns, rows), name=name, content_type="text/csv; charset=utf-8")


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
