"""The first page: what waits, what is held, what failed and why, what it cost, and what goes next."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from django.contrib import admin
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone

from memories import conf
from memories.admin import figures
from memories.admin.reach import tenants_of, within
from memories.admin.rebuilding import Rebuilding, rebuilding
from memories.models import EndUser, ExtractionRun, Fact, Operator, Status

RUNS_SHOWN = 10
TENANTS_SHOWN = 5


@dataclass(frozen=True)
class InUse:
    """What the hub reads and finds with, whether it is what comes with the hub, and what is on its way."""

    llm_mode: str
    llm: str
    embedding: str
    embedding_is_local: bool
    reranker: str
    rebuilding: Rebuilding | None


def urls() -> list[URLPattern]:
    return [path("figures/", admin.site.admin_view(shown_again), name="figures")]


def shown_again(request: HttpRequest) -> HttpResponse:
    """The figures alone, for the page that is open to show them anew."""
    context = {**overview(request.user, now=timezone.now())}
    return TemplateResponse(request, "memories/dashboard_figures.html", context)


def overview(operator: Operator | AnonymousUser, *, now: datetime) -> dict[str, Any]:
    """All that the page shows to this operator: what they may not look at is not counted either."""
    rows = partial(within, operator)
    shown: dict[str, Any] = {"now": now, "tenants": tenants_of(operator).count(), "in_use": in_use()}
    for needs, read in BOXES:
        if operator.has_perms(needs):
            shown |= read(rows, now)
    return shown


def in_use() -> InUse:
    """The model and the embedding that hold now."""
    llm, embedding, reranker = conf.llm(), conf.embeddings(), conf.reranking()
    is_local = embedding.mode != conf.EMBEDDINGS_OPENAI
    return InUse(llm.mode, llm.model, embedding.model, is_local, reranker.path, rebuilding())


def _facts(rows: figures.Within, now: datetime) -> dict[str, Any]:
    chart = figures.facts_per_day(rows, now=now)
    active = rows(Fact.objects.filter(status=Status.ACTIVE)).count()
    return {"active": active, "this_week": sum(column.values[0] for column in chart.columns[-7:]), "chart": chart}


def _fading(rows: figures.Within, now: datetime) -> dict[str, Any]:
    tenants = figures.fading(rows, now=now)
    going = [row for row in tenants if row["all"] or row["held"]]
    return {
        "facts": sum(row["facts"] for row in tenants),
        "held": sum(row["held"] for row in tenants),
        "tenants": going[:TENANTS_SHOWN],
        "more": max(0, len(going) - TENANTS_SHOWN),
    }


def _runs(rows: figures.Within, now: datetime) -> dict[str, Any]:
    chart, spent = figures.tokens_per_day(rows, now=now)
    failures = figures.failures(rows, now=now)
    latest = rows(ExtractionRun.objects.select_related("end_user", "tenant")).order_by("-started_at", "-id")
    return {
        "runs": latest[:RUNS_SHOWN],
        "failures": failures,
        "failed_today": sum(row["today"] for row in failures),
        "tokens": chart,
        "spent": spent,
    }


# What each of the boxes takes, and what is read for it.
BOXES: tuple[tuple[tuple[str, ...], Callable[[figures.Within, datetime], dict[str, Any]]], ...] = (
    (("memories.view_reviewitem",), lambda rows, _now: {"review": figures.review(rows)}),
    (("memories.view_enduser",), lambda rows, _now: {"people": rows(EndUser.objects.themselves()).count()}),
    (
        ("memories.view_enduser", "memories.view_reviewitem"),
        lambda rows, now: {"most_to_review": figures.most_to_review(rows, now=now)},
    ),
    (("memories.view_fact",), lambda rows, now: {"facts": _facts(rows, now)}),
    (("memories.view_session",), lambda rows, now: {"queue": figures.queue(rows, now=now)}),
    (("memories.view_decaypass",), lambda rows, now: {"fading": _fading(rows, now)}),
    (("memories.view_privacycase",), lambda rows, now: {"cases": figures.cases_by_days_left(rows, now=now)}),
    (("memories.view_extractionrun",), _runs),
)
