"""The frame of every page of the person: the session, the language, the limits, the headers.

There is no session of Django here and no operator: one cookie of its own, for these addresses alone, names the link.
Nothing of a page is kept by the browser, and no address of it says anything of a person.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.csrf import csrf_exempt

from memories.api.request_ids import request_id_of
from memories.api.throttles import Tally
from memories.audit import Actor, kept_request_id
from memories.conf import Rate
from memories.curation.people import page_links
from memories.curation.people.errors import PageLinkUnknown
from memories.db import tenancy
from memories.exceptions import MemoryHubError, NotFound
from memories.models import EndUser, PersonLink
from memories.models.people.tenants import PersonMay
from memories.person_page import colors, words
from memories.telemetry import log_fields

COOKIE, PATH = "memoryhub_person", "/me/"
HEADERS = {
    "Cache-Control": "no-store",
    # Requests of our own forms say where they come from; another site is told nothing.
    "Referrer-Policy": "same-origin",
    "X-Robots-Tag": "noindex, nofollow",
    "X-Content-Type-Options": "nosniff",
}
# Of one session and process.
VIEWS, ACTS = Rate(requests=120, seconds=60), Rate(requests=30, seconds=60)
_VIEWS, _ACTS = Tally(), Tally()
View = Callable[..., HttpResponseBase]
Response = TypeVar("Response", bound=HttpResponseBase)
# Name of the template and of the address, title, and what must be allowed for it.
TABS: tuple[tuple[str, Promise, str, PersonMay | None], ...] = (
    ("overview", _("What is remembered"), "person-page", None),
    ("conversations", _("Conversations"), "person-conversations", PersonMay.CONVERSATIONS),
    ("readers", _("Who was given it"), "person-readers", PersonMay.READERS),
    ("data", _("Your rights"), "person-data", None),
)
MOST_PAGES = 10_000


@dataclass(frozen=True)
class Visit:
    """A request of a person's session: their link, who acts, and when."""

    request: HttpRequest
    link: PersonLink
    actor: Actor
    now: datetime

    @property
    def person(self) -> EndUser:
        return self.link.end_user

    @property
    def number(self) -> int:
        """The page of a list that the address asks for, from 1."""
        given = self.request.GET.get("page", "")
        is_number = given.isascii() and given.isdigit() and len(given) < 10
        return int(given) if is_number and 0 < int(given) <= MOST_PAGES else 1

    def may(self, what: PersonMay) -> bool:
        return page_links.may(self.link, what)

    def page(self, name: str, **shown: Any) -> HttpResponse:
        """A page of the session; `name` is the template's, without its prefix."""
        given = {
            "person": self.person,
            "token": page_links.form_token(self.link),
            "may": {one.value: self.may(one) for one in PersonMay},
            "ends_at": self.link.ends_at,
            "tab": name,
            "tabs": [(tab, title, reverse(view)) for tab, title, view, what in TABS if what is None or self.may(what)],
            "said": words.SAID.get(self.request.GET.get("said", "")),
            "failed": failure(self.request.GET.get("failed", "")),
        }
        return page(f"person_page_{name}", link=self.link, **given | shown)

    def back(self, view: str, *args: object, **codes: str) -> HttpResponseRedirect:
        """To a page, which says by a code what was done: nothing personal stands in an address."""
        query = f"?{urlencode(codes)}" if codes else ""
        address = f"{reverse(view, args=args)}{query}"
        return framed_by(HttpResponseRedirect(address, status=HTTPStatus.SEE_OTHER, headers=HEADERS), self.link)


def visited(method: str) -> Callable[[View], View]:
    """Declare a view of the session for GET or POST; it gets a Visit. A POST changes something, by a form of ours."""

    def declare(view: View) -> View:
        @csrf_exempt
        @wraps(view)
        def framed(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            with translation.override(language_of(request)):
                if request.method not in (method, "HEAD" if method == "GET" else method):
                    return closed("method", HTTPStatus.METHOD_NOT_ALLOWED, allow=method)
                now = timezone.now()
                try:
                    link = _session(request, now)
                except MemoryHubError as error:
                    return closed(error.code if COOKIE in request.COOKIES else "no_session", error.status)
            with translation.override(language_of(request, link)), timezone.override(link.end_user.clock):
                return _answered(view, request, link, now, *args, **kwargs)

        return framed

    return declare


def require(visit: Visit, what: PersonMay) -> None:
    """Errors: NotFound, as if there were no such act."""
    if not visit.may(what):
        raise NotFound


def language_of(request: HttpRequest, link: PersonLink | None = None) -> str:
    """The link's, else what the browser asks for."""
    return (link.language if link else "") or translation.get_language_from_request(request)


def page(name: str, *, status: int = HTTPStatus.OK, link: PersonLink | None = None, **shown: Any) -> HttpResponse:
    """Rendered without the request: nothing of a signed-in operator gets into it."""
    tenant = link.tenant if link else None
    look = {
        "language": translation.get_language(),
        "application": (tenant.name or tenant.slug) if tenant else "",
        "color": colors.known(tenant.person_color) if tenant else "",
        "is_framed": bool(link and link.embed_origins),
    }
    response = HttpResponse(render_to_string(f"memories/{name}.html", look | shown), status=status, headers=HEADERS)
    return framed_by(response, link)


def framed_by(response: Response, link: PersonLink | None) -> Response:
    """Let the sites that the link declares show it in a frame, and no others."""
    return _frameable(response, link.embed_origins) if link and link.embed_origins else response


def _frameable(response: Response, origins: list[str]) -> Response:
    response._csp_replace = {"frame-ancestors": origins}  # type: ignore[attr-defined]  # django-csp's
    response.xframe_options_exempt = True  # type: ignore[attr-defined]  # Django's
    return response


def closed(code: str, status: int, *, link: PersonLink | None = None, **more: str) -> HttpResponse:
    """A page that says kindly why there is nothing else."""
    heading, text = words.CLOSED.get(code, words.CLOSED["link_over"])
    response = page("person_page_closed", status=status, link=link, heading=heading, text=text)
    for name, value in more.items():
        response.headers[name.replace("_", "-").title()] = value
    # Without a session nobody knows whose frame it is; there is nothing of anybody on it, and nothing to press.
    return response if link else _frameable(response, ["*"])


def keep_cookie(response: HttpResponse, link: PersonLink, value: str) -> None:
    """The session's cookie: for these addresses, not for scripts; in a frame of another site for that site alone."""
    is_framed = bool(link.embed_origins)
    response.set_cookie(
        COOKIE,
        value,
        max_age=int(page_links.SESSION.total_seconds()),
        # Python writes no such attribute before 3.14.
        path=f"{PATH}; Partitioned" if is_framed else PATH,
        secure=settings.HTTPS or is_framed,
        httponly=True,
        samesite="None" if is_framed else "Lax",
    )


def enter(text: str, salt: str) -> Any:
    """The number of the link that a token or cookie names; statements see its tenant from now on. Errors:
    PageLinkUnknown."""
    tenant_id, link_id = page_links.ids_in(text, salt)
    tenancy.set_current(tenancy.of_one(tenant_id))
    return link_id


def note_tenant(request: HttpRequest, link: PersonLink) -> None:
    """For the log's line about the answer."""
    log_fields.note_tenant(link.tenant.slug)
    request.META[log_fields.ANSWERED_TENANT] = link.tenant.slug


def _session(request: HttpRequest, now: datetime) -> PersonLink:
    """Errors: PageLinkUnknown, PageLinkOver, PageOff."""
    if COOKIE not in request.COOKIES:
        raise PageLinkUnknown
    link = page_links.session(enter(request.COOKIES[COOKIE], page_links.SESSION_SALT), now=now)
    note_tenant(request, link)
    return link


def _answered(
    view: View, request: HttpRequest, link: PersonLink, now: datetime, *args: Any, **kwargs: Any
) -> HttpResponseBase:
    is_act = request.method == "POST"
    if is_act:
        # No other site knows the token of this session's forms, and browsers say who sends.
        is_own_site = request.headers.get("Sec-Fetch-Site", "same-origin") == "same-origin"
        if not (is_own_site and page_links.is_form_token(link, request.POST.get("token", ""))):
            return closed("foreign", HTTPStatus.FORBIDDEN, link=link)
    tally, rate = (_ACTS, ACTS) if is_act else (_VIEWS, VIEWS)
    allowance = tally.count(link.pk, "", rate)
    if not allowance.allowed:
        return closed("busy", HTTPStatus.TOO_MANY_REQUESTS, link=link, retry_after=str(allowance.reset))
    actor = page_links.actor_of(link, kept_request_id(request_id_of(request)))
    if not is_act:
        page_links.note_view(link, actor=actor, now=now)
    try:
        return view(Visit(request, link, actor, now), *args, **kwargs)
    except MemoryHubError as error:
        if is_act:
            return Visit(request, link, actor, now).back("person-page", failed=error.code)
        return closed_here(Visit(request, link, actor, now), error)


def closed_here(visit: Visit, error: MemoryHubError) -> HttpResponse:
    """The session goes on; this is not there."""
    return visit.page("nothing", failed=failure(error.code), status=error.status)


def failure(code: str) -> Any:
    """Why something did not work, in words; None without a code."""
    return (words.FAILED.get(code) or words.SOMETHING) if code else None
