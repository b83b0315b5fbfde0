"""A fresh password: what is hard to take back is done by whoever gave theirs within the last ten minutes."""

from copy import copy
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth import authenticate
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminPasswordWidget

from memories.admin.identity import provider_link, provider_name
from memories.models import Operator

FRESH = timedelta(minutes=10)
GIVEN_AT = "password_given_at"
# Its own name: a form that is carried along may have a password among its fields.
FIELD = "fresh_password"
# What the carried form is sent again with anyway.
NOT_CARRIED = (FIELD, "csrfmiddlewaretoken")


class PasswordForm(forms.Form):
    fresh_password = forms.CharField(
        label=gettext_lazy("Your password"),
        strip=False,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "current-password", "autofocus": True}),
    )

    def __init__(self, data: Any = None, *, request: HttpRequest) -> None:
        self.request = request
        super().__init__(data)

    def clean_fresh_password(self) -> str:
        given: str = self.cleaned_data[FIELD]
        name, bare = self.request.user.get_username(), _bare(self.request)
        # Through the backends, so that guessing here is counted and locked out as it is at sign-in.
        found = authenticate(bare, username=name, password=given)
        self.request.axes_locked_out = getattr(bare, "axes_locked_out", False)  # type: ignore[attr-defined]
        if found is None or found.pk != self.request.user.pk:
            raise forms.ValidationError(_("This is not your password."), code="password")
        return given


def note(request: HttpRequest, *, now: datetime) -> None:
    """Remember in the session that the operator gave the password just now."""
    request.session[GIVEN_AT] = now.timestamp()


def is_fresh(request: HttpRequest, *, now: datetime) -> bool:
    """Whether the operator gave the password in this session within the last ten minutes."""
    age = now.timestamp() - request.session.get(GIVEN_AT, 0)
    return bool(0 <= age <= FRESH.total_seconds())


def required(request: HttpRequest) -> HttpResponse | None:
    """None when the password is fresh; else the answer that asks for it instead of what was requested.

    A page is asked for again by its address. A form that was posted travels along as hidden fields of the password
    page, to its own address, so that nothing typed is lost and none of it gets into an address.
    """
    if not isinstance(request.user, Operator):
        raise PermissionDenied
    now = timezone.now()
    if is_fresh(request, now=now):
        return None
    if request.method != "POST":
        return HttpResponseRedirect(f"{reverse('admin:fresh_password')}?{urlencode({'next': request.get_full_path()})}")
    form = PasswordForm(request.POST if FIELD in request.POST else None, request=request)
    if form.is_valid():
        _refresh(request, now=now)
        return None
    carried = [
        (name, value) for name in request.POST if name not in NOT_CARRIED for value in request.POST.getlist(name)
    ]
    return _page(request, form, carried=carried, status=403)


def urls() -> list[URLPattern]:
    return [path("fresh-password/", admin.site.admin_view(fresh_password), name="fresh_password")]


def fresh_password(request: HttpRequest) -> HttpResponse:
    """Ask for the password, then go on to the page named by `next`."""
    form = PasswordForm(request.POST if request.method == "POST" else None, request=request)
    if not form.is_valid():
        return _page(request, form, status=400 if form.is_bound else 200)
    _refresh(request, now=timezone.now())
    return HttpResponseRedirect(_next(request))


def _bare(request: HttpRequest) -> HttpRequest:
    """The request without what was typed: whoever counts wrong passwords keeps that."""
    bare = copy(request)
    bare.GET = bare.POST = QueryDict()
    return bare


def _refresh(request: HttpRequest, *, now: datetime) -> None:
    # A key that somebody saw before is worth nothing from now on.
    request.session.cycle_key()
    note(request, now=now)


def _next(request: HttpRequest) -> str:
    """Where to go on: an address of this site alone."""
    wanted = request.GET.get("next", "")
    ours = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    return wanted if ours else reverse("admin:index")


def _page(
    request: HttpRequest, form: PasswordForm, *, status: int, carried: list[tuple[str, str]] | None = None
) -> TemplateResponse:
    # Who has none signs in once more where they signed in.
    to = _next(request) if carried is None else request.path
    elsewhere = provider_name() and not request.user.has_usable_password()  # type: ignore[union-attr]
    context = {
        **admin.site.each_context(request),
        "title": _("Your password, once more"),
        "provider": provider_name(),
        "provider_link": provider_link(to=to, again=True) if elsewhere else "",
        "form": form,
        "carried": carried or [],
    }
    return TemplateResponse(request, "memories/fresh_password.html", context, status=status)
