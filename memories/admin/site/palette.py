"""The command palette finds pages by title, people by name or the start of the caller's id, cases by their reference
or number, and any record by its UUID.

The query travels in the body of a POST, since the browser's history and proxies' logs keep addresses. No cache and no
browser keeps it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.db.models import CharField, Model, Q, QuerySet
from django.db.models.functions import Cast
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from memories import models
from memories.admin.access.tenant_scope import within
from memories.admin.site import sidebar
from memories.admin.site.naming import called
from memories.admin.site.page import HubModelAdmin, render_page, url_of
from memories.admin.site.template_tags import who
from memories.models.ids import parse_uuid

SHOWN = 8
# A name or a number is looked for from so many letters on.
SHORTEST = 2
LONGEST = 255
# Our script sets this header: it shows the results inside the current page.
RESULTS_ONLY = "X-Palette"
# With this value it is the script of a form's field for an end user.
PEOPLE_ONLY = "people"
# Models that are found by UUID, with their icons in the sidebar.
RECORDS: dict[type[Model], str] = {
    models.EndUser: "group",
    models.Fact: "lightbulb",
    models.Episode: "auto_stories",
    models.Session: "forum",
    models.ReviewItem: "rule",
    models.ExtractionRun: "neurology",
    models.DecayPass: "auto_delete",
    models.PrivacyCase: "shield_person",
    models.APIKey: "key",
    models.Tenant: "apps",
}


@dataclass(frozen=True)
class PaletteHit:
    link: str
    title: str
    kind: str
    icon: str


def search(request: HttpRequest) -> HttpResponse:
    """The hits of the posted words, on a page with the form, or alone for our script."""
    words = request.POST.get("words", "").strip()[:LONGEST].replace("\x00", "")
    if request.headers.get(RESULTS_ONLY) == PEOPLE_ONLY:
        return _suggested(request, words)
    hits = [*_pages(request, words), *_records(request, words), *_cases(request, words), *_people(request, words)]
    context: dict[str, Any] = {"words": words, "hits": hits[: 3 * SHOWN]}
    if RESULTS_ONLY in request.headers:
        page = TemplateResponse(request, "memories/palette_hits.html", context)
    else:
        page = render_page(request, "memories/palette_page.html", title=_("Find"), **context)
    page["Cache-Control"] = "no-store"
    return page


def _suggested(request: HttpRequest, words: str) -> HttpResponse:
    """Options for a field that takes an external id: people of the posted tenant who fit the words."""
    people: list[models.EndUser] = []
    tenant = parse_uuid(request.POST.get("tenant", ""))
    if words and tenant and request.user.has_perm("memories.view_enduser"):
        people = found_people(within(request.user, models.EndUser.objects.filter(tenant=tenant)), words)[:SHOWN]
    page = TemplateResponse(request, "memories/person_options.html", {"people": people})
    page["Cache-Control"] = "no-store"
    return page


def _pages(request: HttpRequest, words: str) -> Iterator[PaletteHit]:
    """The pages of the sidebar whose title contains the words; without words all of them."""
    for group in sidebar.navigation(request):
        for item in group["items"]:
            if words.casefold() in str(item["title"]).casefold():
                yield PaletteHit(item["link"], str(item["title"]), str(group["title"]) or _("Page"), item["icon"])


def _records(request: HttpRequest, words: str) -> Iterator[PaletteHit]:
    """The record with this UUID, if the operator may see it."""
    wanted = parse_uuid(words)
    if wanted is None:
        return
    for model, icon in RECORDS.items():
        page = admin.site._registry.get(model)
        if isinstance(page, HubModelAdmin) and page.has_view_permission(request):
            for record in page.get_queryset(request).filter(pk=wanted):
                yield PaletteHit(url_of(record), called(record), str(model._meta.verbose_name), icon)


def _cases(request: HttpRequest, words: str) -> Iterator[PaletteHit]:
    """Cases by the reference that somebody gave them, or by the beginning of their number."""
    page = admin.site._registry.get(models.PrivacyCase)
    if len(words) < SHORTEST or not isinstance(page, HubModelAdmin) or not page.has_view_permission(request):
        return
    # A whole number is found among the records.
    number = words.casefold() if parse_uuid(words) is None else ""
    by_number = Q(text__startswith=number) if number else Q(pk__in=[])
    cases = page.get_queryset(request).annotate(text=Cast("pk", CharField()))
    found = cases.filter(Q(reference__icontains=words) | by_number)
    for case in found.order_by("-received_at", "-pk")[:SHOWN]:
        kind = str(models.PrivacyCase._meta.verbose_name)
        yield PaletteHit(url_of(case), called(case), kind, RECORDS[models.PrivacyCase])


def _people(request: HttpRequest, words: str) -> Iterator[PaletteHit]:
    """People whose id starts with the words, an exact match first, and then those with the words in their name."""
    if not words or not request.user.has_perm("memories.view_enduser"):
        return
    for person in found_people(within(request.user, models.EndUser.objects.all()), words)[:SHOWN]:
        below = f"{person.external_id} · {person.tenant}" if person.display_name else str(person.tenant)
        yield PaletteHit(url_of(person), who(person), below, RECORDS[models.EndUser])


def found_people(people: QuerySet[models.EndUser], words: str) -> list[models.EndUser]:
    """Those of the people who fit the words by id or name, at most SHOWN; those who were merged lead to who stays."""
    by_id = people.filter(Q(external_id=words) | Q(external_id__startswith=words)).select_related("tenant")
    found = list(by_id.order_by("external_id", "tenant__slug")[:SHOWN])
    if len(words) >= SHORTEST or not words.isascii():
        # A name is not indexed: Chinese ones have two or three characters, and of others one letter would fit most.
        by_name = people.filter(display_name__icontains=words).exclude(pk__in=[one.pk for one in found])
        found += by_name.select_related("tenant").order_by("display_name", "external_id")[: SHOWN - len(found)]
    return found
