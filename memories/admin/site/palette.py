"""The command palette finds pages by title, jobs of the help by what they are about, people by name or the start of the
caller's id, cases by their reference or number, any record by its UUID, and memories by their words.

The query travels in the body of a POST, since the browser's history and proxies' logs keep addresses. No cache and no
browser keeps it.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from django.contrib import admin
from django.db.models import CharField, Model, Q, QuerySet
from django.db.models.functions import Cast
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from memories import models
from memories.admin.access.tenant_scope import tenants_of, within
from memories.admin.people.finding import find_person
from memories.admin.site import help_page, palette_memories, sidebar, wording
from memories.admin.site.naming import named
from memories.admin.site.page import HubModelAdmin, render_page, url_of
from memories.admin.site.template_tags import display_name
from memories.kinds import PLAIN
from memories.models.ids import parse_uuid

SHOWN = 8
# A name or a number is looked for from so many letters on.
SHORTEST = 2
LONGEST = 255
# Our script sets this header: it shows the results inside the current page.
RESULTS_ONLY = "X-Palette"
# Of a tenant's sessions so many, the newest, are looked through for the beginning of an id.
SESSIONS_LOOKED_THROUGH = 20_000
# Models that are found by UUID, with their icons in the sidebar.
RECORDS: dict[type[Model], str] = {
    models.EndUser: "group",
    models.Fact: "lightbulb",
    models.Episode: "auto_stories",
    models.Attachment: "attach_file",
    models.MemoryFile: "description",
    **{kind.model: kind.plain.icon for kind in PLAIN if kind.plain},
    models.Trajectory: "route",
    models.GraphTriple: "hub",
    models.GraphEntity: "category",
    models.Dream: "bedtime",
    models.Skill: "school",
    models.Import: "upload_file",
    models.MemoryGroup: "groups",
    models.StoreItem: "inventory_2",
    models.LoggedContext: "history_edu",
    models.Session: "forum",
    models.ReviewItem: "rule",
    models.ExtractionRun: "neurology",
    models.DecayPass: "auto_delete",
    models.PrivacyCase: "shield_person",
    models.APIKey: "key",
    models.ManagementKey: "vpn_key",
    models.Tenant: "apps",
    models.Agent: "smart_toy",
    models.WebhookEndpoint: "webhook",
}


class PaletteHit(NamedTuple):
    link: str
    title: str
    kind: str
    icon: str


def search(request: HttpRequest) -> HttpResponse:
    """The hits of the posted words, on a page with the form, or alone for our script."""
    words = request.POST.get("words", "").strip()[:LONGEST].replace("\x00", "")
    if suggest := SUGGESTIONS.get(request.headers.get(RESULTS_ONLY, "")):
        page = TemplateResponse(request, "memories/suggestions.html", {"found": suggest(request, words)})
        page["Cache-Control"] = "no-store"
        return page
    hits = [*_pages(request, words), *_records(request, words), *_cases(request, words), *_people(request, words)]
    hits = [*hits[: 3 * SHOWN], *_help(request, words), *_memories(request, words)]
    context: dict[str, Any] = {"words": words, "hits": hits}
    if palette_memories.is_word(words):
        context["searches"] = palette_memories.searches_of(request, words)
    if RESULTS_ONLY in request.headers:
        page = TemplateResponse(request, "memories/palette_hits.html", context)
    else:
        page = render_page(request, "memories/palette_page.html", title=_("Find"), **context)
    page["Cache-Control"] = "no-store"
    return page


def _people_for_field(request: HttpRequest, words: str) -> Iterator[tuple[str, str]]:
    """End users of the posted tenant who fit the words."""
    tenant = parse_uuid(request.POST.get("tenant", ""))
    if words and tenant and request.user.has_perm("memories.view_enduser"):
        people = within(request.user, models.EndUser.objects.filter(tenant=tenant))
        yield from ((one.external_id, one.display_name) for one in found_people(people, words)[:SHOWN])


def _agents_for_field(request: HttpRequest, words: str) -> Iterator[tuple[str, str]]:
    """Agents of the posted tenant with the words in their name; those that the posted end user spoke with."""
    sessions = _sessions_in_form(request)
    if sessions is None:
        return
    rows: QuerySet[Any] = sessions
    if not request.POST.get("person"):
        rows = models.Agent.objects.filter(tenant=parse_uuid(request.POST["tenant"]))
    # Stored lower-cased; empty where a session has none.
    names = rows.exclude(agent_id="").filter(agent_id__contains=words.lower()).order_by("agent_id")
    yield from ((name, "") for name in names.values_list("agent_id", flat=True).distinct()[:SHOWN])


def _sessions_for_field(request: HttpRequest, words: str) -> Iterator[tuple[str, str]]:
    """The newest sessions of the posted tenant, or end user, whose id begins with the words."""
    sessions = _sessions_in_form(request)
    if sessions is None:
        return
    if words:
        # An id is indexed for a person only.
        newest = sessions.order_by("-last_turn_at").values("pk")[:SESSIONS_LOOKED_THROUGH]
        sessions = sessions.filter(pk__in=newest, external_id__startswith=words)
    may_see_people, now = request.user.has_perm("memories.view_enduser"), timezone.now()
    for one in sessions.select_related("end_user").order_by("-last_turn_at")[:SHOWN]:
        whose = display_name(one.end_user) if may_see_people else ""
        yield (
            one.external_id,
            " · ".join(filter(None, (whose, one.agent_id, wording.relative(one.last_turn_at, now=now)))),
        )


def _sessions_in_form(request: HttpRequest) -> QuerySet[models.Session] | None:
    """Sessions of the posted tenant, and of the end user if the form names one; None if that names none to see."""
    posted = parse_uuid(request.POST.get("tenant", ""))
    tenant = tenants_of(request.user).filter(pk=posted).first() if posted else None
    if tenant is None or not request.user.has_perm("memories.view_session"):
        return None
    sessions = models.Session.objects.filter(tenant=tenant)
    words = request.POST.get("person", "").replace("\x00", "")
    if not words:
        return sessions
    person = find_person(tenant, words)[0] if request.user.has_perm("memories.view_enduser") else None
    return sessions.filter(end_user=person) if person else None


# Value of the header → what a form's field of this kind offers.
SUGGESTIONS: Mapping[str, Callable[[HttpRequest, str], Iterator[tuple[str, str]]]] = {
    "people": _people_for_field,
    "agents": _agents_for_field,
    "sessions": _sessions_for_field,
}


def _pages(request: HttpRequest, words: str) -> Iterator[PaletteHit]:
    """The pages of the sidebar whose title contains the words; without words all of them."""
    for group in sidebar.navigation(request):
        for item in group["items"]:
            if words.casefold() in str(item["title"]).casefold():
                yield PaletteHit(item["link"], str(item["title"]), str(group["title"]) or _("Page"), item["icon"])


def _help(request: HttpRequest, words: str) -> Iterator[PaletteHit]:
    """The jobs of the help that the words are about, best first."""
    for job in help_page.about(request, words):
        yield PaletteHit(f"{reverse('admin:help')}#{job.name}", str(job.title), _("Help"), "help")


def _memories(request: HttpRequest, words: str) -> Iterator[PaletteHit]:
    if palette_memories.is_enough(words):
        yield from map(PaletteHit._make, palette_memories.memories_of(request, words, now=timezone.now()))


def _records(request: HttpRequest, words: str) -> Iterator[PaletteHit]:
    """The record with this UUID, if the operator may see it."""
    wanted = parse_uuid(words)
    if wanted is None:
        return
    for model, icon in RECORDS.items():
        page = admin.site._registry.get(model)
        if not isinstance(page, HubModelAdmin) or not page.has_view_permission(request):
            continue
        # First a plain look-up: the statements of the lists join and count, and all but one of them find nothing.
        if model._default_manager.filter(pk=wanted).exists():
            for record in page.get_queryset(request).filter(pk=wanted):
                yield PaletteHit(url_of(record), named(record, request.user), str(model._meta.verbose_name), icon)


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
        yield PaletteHit(url_of(case), named(case, request.user), kind, RECORDS[models.PrivacyCase])


def _people(request: HttpRequest, words: str) -> Iterator[PaletteHit]:
    """People whose id starts with the words, an exact match first, and then those with the words in their name."""
    if not words or not request.user.has_perm("memories.view_enduser"):
        return
    for person in found_people(within(request.user, models.EndUser.objects.all()), words)[:SHOWN]:
        below = f"{person.external_id} · {person.tenant}" if person.display_name else str(person.tenant)
        yield PaletteHit(url_of(person), display_name(person), below, RECORDS[models.EndUser])


def found_people(people: QuerySet[models.EndUser], words: str) -> list[models.EndUser]:
    """Those of the people who fit the words by id or name, at most SHOWN; those who were merged lead to who stays."""
    by_id = people.filter(Q(external_id=words) | Q(external_id__startswith=words)).select_related("tenant")
    found = list(by_id.order_by("external_id", "tenant__slug")[:SHOWN])
    if len(words) >= SHORTEST or not words.isascii():
        # A name is not indexed: Chinese ones have two or three characters, and of others one letter would fit most.
        by_name = people.filter(display_name__icontains=words).exclude(pk__in=[one.pk for one in found])
        found += by_name.select_related("tenant").order_by("display_name", "external_id")[: SHOWN - len(found)]
    return found
