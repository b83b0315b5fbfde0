"""The addresses of the page for the person: opening a link, what is remembered, correcting and forgetting, closing."""

import uuid
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone, translation
from django.views.decorators.csrf import csrf_exempt

from memories.api.request_ids import request_id_of
from memories.audit import kept_request_id
from memories.curation.facts.editing import correct_fact
from memories.curation.facts.forgetting import forget_fact
from memories.curation.facts.restoring import restore_fact
from memories.curation.people import page_links
from memories.curation.people.errors import PageLinkUsed
from memories.exceptions import MemoryHubError, OperatorWord
from memories.invisible import strip_invisible
from memories.models.people.tenants import PersonMay
from memories.person_page import colors, frame, profiles, reading
from memories.person_page.frame import Visit, require, visited

LONGEST = 2_000


@csrf_exempt
def open_page(request: HttpRequest, token: str) -> HttpResponseBase:
    """GET: exchange a link for its session, and go on without the link in the address. A look-ahead takes nothing."""
    purposes = (request.headers.get(name, "").lower() for name in ("Sec-Purpose", "Purpose", "X-Purpose", "X-Moz"))
    is_look_ahead = any("prefetch" in purpose or "preview" in purpose for purpose in purposes)
    with translation.override(frame.language_of(request)):
        if request.method != "GET" or is_look_ahead:
            status = HTTPStatus.METHOD_NOT_ALLOWED if request.method != "HEAD" else HTTPStatus.OK
            return frame.closed("method", status, allow="GET")
        try:
            link_id = frame.enter(token, page_links.LINK_SALT)
            request_id = kept_request_id(request_id_of(request))
            link, cookie = page_links.open_link(link_id, now=timezone.now(), request_id=request_id)
        except PageLinkUsed as error:
            # Back, or the address once more, in the browser that opened it.
            if _is_open_here(request, token):
                return HttpResponseRedirect(reverse("person-page"), status=HTTPStatus.SEE_OTHER, headers=frame.HEADERS)
            return frame.closed(error.code, error.status)
        except MemoryHubError as error:
            return frame.closed(error.code, error.status)
    frame.note_tenant(request, link)
    response = HttpResponseRedirect(reverse("person-page"), status=HTTPStatus.SEE_OTHER, headers=frame.HEADERS)
    frame.keep_cookie(response, link, cookie)
    return frame.framed_by(response, link)


def sheet(_request: HttpRequest, digits: str) -> HttpResponse:
    """The tenant's colour as a style sheet: the same for everybody, and never changed."""
    headers = {"Cache-Control": "public, max-age=86400", "X-Content-Type-Options": "nosniff"}
    return HttpResponse(colors.sheet(digits), content_type="text/css; charset=utf-8", headers=headers)


@visited("GET")
def overview(visit: Visit) -> HttpResponse:
    forms = profiles.profiles_of(visit)
    beside = profiles.fact_ids(forms)
    found = reading.remembered(visit.person, number=visit.number, now=visit.now, beside=beside)
    return visit.page("overview", found=found, profiles=forms, is_in_forms=bool(beside), **reading.beside(visit.person))


@visited("GET")
def fact(visit: Visit, fact_id: uuid.UUID) -> HttpResponse:
    return visit.page("fact", one=reading.shown(reading.fact_of(visit.person, fact_id)))


@visited("POST")
def correct(visit: Visit, fact_id: uuid.UUID) -> HttpResponseBase:
    """The person's own words bind, as an operator's do."""
    require(visit, PersonMay.CORRECT)
    row = reading.fact_of(visit.person, fact_id)
    text = strip_invisible(visit.request.POST.get("text", "")).strip()
    if not text or len(text) > LONGEST:
        return visit.back("person-fact", fact_id, failed="too_long" if text else "empty")
    try:
        correct_fact(
            fact_id=row.pk,
            tenant=visit.link.tenant,
            content=text,
            reason="",
            actor=visit.actor,
            now=visit.now,
            expected_version=_version(visit),
        )
    except MemoryHubError as error:
        return visit.back("person-fact", fact_id, failed=error.code)
    return visit.back("person-page", said="corrected")


@visited("POST")
def forget(visit: Visit, fact_id: uuid.UUID) -> HttpResponseBase:
    require(visit, PersonMay.FORGET)
    row = reading.fact_of(visit.person, fact_id)
    if row.pinned:
        raise OperatorWord
    forget_fact(
        fact_id=row.pk,
        tenant=visit.link.tenant,
        actor=visit.actor,
        now=visit.now,
        expected_version=_version(visit),
    )
    return visit.back("person-page", said="forgotten")


@visited("POST")
def restore(visit: Visit, fact_id: uuid.UUID) -> HttpResponseBase:
    """Bring back what the person forgot here."""
    require(visit, PersonMay.FORGET)
    row = reading.forgotten_fact(visit.person, fact_id)
    restore_fact(fact_id=row.pk, tenant=visit.link.tenant, actor=visit.actor, now=visit.now)
    return visit.back("person-page", said="restored")


@visited("POST")
def leave(visit: Visit) -> HttpResponseBase:
    page_links.end_session(visit.link, actor=visit.actor, now=visit.now)
    response = frame.closed("done", HTTPStatus.OK, link=visit.link)
    response.delete_cookie(frame.COOKIE, path=frame.PATH)
    return response


def _version(visit: Visit) -> int | None:
    """The version that the form showed; without one whatever there is now."""
    given = visit.request.POST.get("version", "")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 10 else None


def _is_open_here(request: HttpRequest, token: str) -> bool:
    """Whether this browser has the live session of the very link."""
    try:
        opened = page_links.ids_in(request.COOKIES.get(frame.COOKIE, ""), page_links.SESSION_SALT)
        if opened != page_links.ids_in(token, page_links.LINK_SALT):
            return False
        page_links.session(opened[1], now=timezone.now())
    except MemoryHubError:
        return False
    return True
