"""The dashboard: what needs the operator, queues, held passes, failures, what forgetting takes next, and trends."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone

from memories import conf
from memories.admin.access.tenant_scope import within
from memories.admin.dashboard import figures, trends
from memories.admin.dashboard.first_run import checklist
from memories.admin.dashboard.needs import needs
from memories.admin.lists.tabs import WEEK
from memories.admin.site import sidebar
from memories.db.counts import counts
from memories.kinds import EMBEDDED
from memories.models import (
    EmbeddingSpace,
    EndUser,
    ExtractionRun,
    Fact,
    Status,
    TurnVector,
)

RUNS_SHOWN = 10
TENANTS_SHOWN = 5


def urls() -> list[URLPattern]:
    return [
        path("figures/", admin.site.admin_view(refreshed), name="figures"),
        path("first-run/", admin.site.admin_view(first_steps), name="first_run"),
        path("trends/", admin.site.admin_view(trending), name="trends"),
    ]


def refreshed(request: HttpRequest) -> HttpResponse:
    """The figures alone. An open dashboard fetches them repeatedly."""
    return TemplateResponse(request, "memories/dashboard_figures.html", overview(request, now=timezone.now()))


def trending(request: HttpRequest) -> HttpResponse:
    """The trends alone. The page fetches them after it is shown, and again for another time or tenant."""
    return TemplateResponse(request, "memories/dashboard_trends.html", trends.shown(request, now=timezone.now()))


def first_steps(request: HttpRequest) -> HttpResponse:
    """The checklist alone. Pages with it fetch it repeatedly, so the first turn ticks it off."""
    return TemplateResponse(request, "memories/first_run.html", checklist(request))


def overview(request: HttpRequest, *, now: datetime) -> dict[str, Any]:
    """The context of the page. Figures that the operator may not see are not computed."""
    operator, of_frame = request.user, sidebar.counts_of(request)
    rows = partial(within, operator)
    context: dict[str, Any] = {"now": now, "tenants": of_frame.tenants, "in_use": _in_use()}
    if operator.has_perm("memories.view_reviewitem"):
        context["review"] = figures.review(rows, waiting=of_frame.waiting)
    for permissions, read in BOXES:
        if operator.has_perms(permissions):
            context |= read(rows, now)
    review, outages = context.get("review"), context.get("outages", [])
    context["has_trends"] = any(operator.has_perm(permission) for permission, _name, _read in trends.TRENDS)
    context["needs"] = needs(rows, operator.has_perm, review=review, outages=outages, now=now)
    return context


def _in_use() -> dict[str, Any]:
    """The current models."""
    llm, embedding, reranker = conf.llm(), conf.embeddings(), conf.reranking()
    return {
        "llm_mode": llm.mode,
        "llm": llm.model,
        "embedding": embedding.model,
        "embedding_is_local": embedding.mode != conf.EMBEDDINGS_OPENAI,
        "reranker": reranker.path,
        "rebuilding": _rebuilding(),
    }


def _rebuilding() -> dict[str, Any] | None:
    """The progress of `manage.py reembed`. None if it does not run: then one query, as counting all vectors is slow."""
    states = EmbeddingSpace.SpaceState
    spaces = {space.state: space for space in EmbeddingSpace.objects.exclude(state=states.RETIRED)}
    building, serving = spaces.get(states.BUILDING), spaces.get(states.SERVING)
    if building is None:
        return None
    done = _vectors_of(building)
    # Texts deleted meanwhile make `done` larger than the count of the serving space.
    return {"model": building.model, "done": done, "texts": max(done, _vectors_of(serving) if serving else 0)}


def _vectors_of(space: EmbeddingSpace) -> int:
    tables: tuple[Any, ...] = (TurnVector, *(kind.embedded.vectors for kind in EMBEDDED if kind.embedded))
    return sum(table._default_manager.filter(space=space).count() for table in tables)


def _facts(rows: figures.Within, now: datetime) -> dict[str, Any]:
    active = rows(Fact.objects.filter(status=Status.ACTIVE))
    return dict(zip(("active", "this_week"), counts([active, active.filter(created_at__gte=now - WEEK)]), strict=True))


def _fading(rows: figures.Within, now: datetime) -> dict[str, Any]:
    tenants = figures.fading(rows, now=now)
    due = [row for row in tenants if row["all"] or row["held"]]
    return {
        "facts": sum(row["facts"] for row in tenants),
        "held": sum(row["held"] for row in tenants),
        "tenants": due[:TENANTS_SHOWN],
        "more": max(0, len(due) - TENANTS_SHOWN),
    }


def _runs(rows: figures.Within, now: datetime) -> dict[str, Any]:
    failures = figures.failures(rows, now=now)
    latest = rows(ExtractionRun.objects.select_related("end_user", "tenant")).order_by("-started_at", "-id")
    return {
        "runs": latest[:RUNS_SHOWN],
        "failures": failures,
        "failed_today": sum(row["today"] for row in failures),
    }


# The boxes of the page: the permissions that each needs, and its figures.
BOXES: tuple[tuple[tuple[str, ...], Callable[[figures.Within, datetime], dict[str, Any]]], ...] = (
    (("memories.view_enduser",), lambda rows, _now: {"people": rows(EndUser.objects.themselves()).count()}),
    (
        ("memories.view_enduser", "memories.view_reviewitem"),
        lambda rows, now: {"most_to_review": figures.most_to_review(rows, now=now)},
    ),
    (("memories.view_fact",), lambda rows, now: {"facts": _facts(rows, now)}),
    (
        ("memories.view_session",),
        lambda rows, now: {"queue": figures.queue(rows, now=now), **figures.model_waits(rows, now=now)},
    ),
    (("memories.view_decaypass",), lambda rows, now: {"fading": _fading(rows, now)}),
    (("memories.view_privacycase",), lambda rows, now: {"cases": figures.cases_by_days_left(rows, now=now)}),
    (("memories.view_extractionrun",), _runs),
)
