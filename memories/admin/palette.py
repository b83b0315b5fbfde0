"""The command palette: pages by their titles, a person by the caller's id, anything of ours by its UUID.

What is typed travels in the body of a POST: an address would stand in the browser's history and in proxies' logs.
Nothing of it is kept, neither in a cache nor in the browser.
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from django.contrib import admin
from django.db.models import Model, Q
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from memories.admin import sidebar
from memories.admin.naming import called
from memories.admin.page import Page, url_of
from memories.admin.reach import within
from memories.models import (
    APIKey,
    DecayPass,
    EndUser,
    Episode,
    ExtractionRun,
    Fact,
    PrivacyCase,
    ReviewItem,
    Session,
    Tenant,
)

SHOWN = 8
LONGEST = 255
# Set by our script: it shows the answer within the page that one is on.
WITHIN = "X-Palette"
# What a UUID may be of, with the sign that stands for it in the sidebar.
RECORDS: dict[type[Model], str] = {
    EndUser: "group",
    Fact: "lightbulb",
    Episode: "auto_stories",
    Session: "forum",
    ReviewItem: "rule",
    ExtractionRun: "neurology",
    DecayPass: "auto_delete",
    PrivacyCase: "shield_person",
    APIKey: "key",
    Tenant: "apps",
}


@dataclass(frozen=True)
class Hit:
    """One thing found: where it is, what it is called and what it is."""

    link: str
    title: str
    kind: str
    icon: str


def search(request: HttpRequest) -> HttpResponse:
    """What fits the posted words: the page with the form, or for our script the results alone."""
    words = request.POST.get("words", "").strip()[:LONGEST].replace("\x00", "")
    found = [*pages(request, words), *_records(request, words), *_people(request, words)]
    shown = {"words": words, "hits": found[: 3 * SHOWN]}
    headers = {"Cache-Control": "no-store"}
    if WITHIN in request.headers:
        return TemplateResponse(request, "memories/palette_hits.html", shown, headers=headers)
    context = {**admin.site.each_context(request), "title": _("Find"), **shown}
    return TemplateResponse(request, "memories/palette_page.html", context, headers=headers)


def pages(request: HttpRequest, words: str) -> list[Hit]:
    """The pages of the sidebar whose title holds the words; all of them when there are none."""
    groups = sidebar.navigation(request)
    entries = [(str(group["title"]), item) for group in groups for item in group["items"]]
    return [
        Hit(item["link"], str(item["title"]), title or _("Page"), item["icon"])
        for title, item in entries
        if words.casefold() in str(item["title"]).casefold()
    ]


def _people(request: HttpRequest, words: str) -> Iterator[Hit]:
    """People whose id begins with the words, the one whose id they are first."""
    if not words or not request.user.has_perm("memories.view_enduser"):
        return
    fitting = Q(external_id=words) | Q(external_id__startswith=words)
    people = within(request.user, EndUser.objects.filter(fitting)).select_related("tenant")
    # The whole id sorts before all that it begins.
    for person in people.order_by("external_id", "tenant__slug")[:SHOWN]:
        yield Hit(url_of(person), person.external_id, str(person.tenant), RECORDS[EndUser])


def _records(request: HttpRequest, words: str) -> Iterator[Hit]:
    """Whatever of ours has this UUID."""
    try:
        wanted = uuid.UUID(words)
    except ValueError:
        return
    for model, icon in RECORDS.items():
        page = admin.site._registry.get(model)
        if isinstance(page, Page) and page.has_view_permission(request):
            for record in page.get_queryset(request).filter(pk=wanted):
                yield Hit(url_of(record), called(record), str(model._meta.verbose_name), icon)
