"""Fresh password: acts that are hard to undo need a password entered within the last ten minutes."""

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

from memories.admin.access.identity import provider_link, provider_name
from memories.models import Operator

FRESH = timedelta(minutes=10)
GIVEN_AT = "password_given_at"
# A name of its own: the carried form may have a password field, too.
FIELD = "fresh_password"
# Fields that the password page adds itself.
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
        password: str = self.cleaned_data[FIELD]
        # A copy without the input, since axes stores the parameters of requests with wrong passwords.
        bare = copy(self.request)
        bare.GET = bare.POST = QueryDict()
        # Through the backends, so that wrong passwords count and lock out as they do at sign-in.
        found = authenticate(bare, username=self.request.user.get_username(), password=password)
        # The lockout page needs these.
        for name in ("axes_locked_out", "shut_until"):
            setattr(self.request, name, getattr(bare, name, None))
        if found is None or found.pk != self.request.user.pk:
            raise forms.ValidationError(_("This is not your password."), code="password")
        return password


def note(request: HttpRequest, *, now: datetime) -> None:
    """Record in the session when the operator entered the password."""
    request.session[GIVEN_AT] = now.timestamp()


def is_fresh(request: HttpRequest, *, now: datetime) -> bool:
    """Whether the operator entered the password in this session within the last ten minutes."""
    age = now.timestamp() - request.session.get(GIVEN_AT, 0)
    return bool(0 <= age <= FRESH.total_seconds())


def required(request: HttpRequest) -> HttpResponse | None:
    """None if the password is fresh; else the response that asks for it.

    A GET redirects to the password page, which leads back to the address. A POST gets the password page itself: it
    carries the form as hidden fields and posts to the same address. So no input is lost or put into an address.
    """
    if not isinstance(request.user, Operator):
        raise PermissionDenied
    now = timezone.now()
    if is_fresh(request, now=now):
        return None
    if request.method != "POST":
        return redirect_to_form(request.get_full_path())
    form = PasswordForm(request.POST if FIELD in request.POST else None, request=request)
    if form.is_valid():
        _refresh(request, now=now)
        return None
    carried = [(name, value) for name, values in request.POST.lists() if name not in NOT_CARRIED for value in values]
    return _page(request, form, carried=carried, status=403)


def redirect_to_form(to: str) -> HttpResponseRedirect:
    """To the page that asks for the password and then leads to this address."""
    return HttpResponseRedirect(f"{reverse('admin:fresh_password')}?{urlencode({'next': to})}")


def urls() -> list[URLPattern]:
    return [path("fresh-password/", admin.site.admin_view(fresh_password), name="fresh_password")]


def fresh_password(request: HttpRequest) -> HttpResponse:
    """Ask for the password, then redirect to `next`."""
    form = PasswordForm(request.POST if request.method == "POST" else None, request=request)
    if not form.is_valid():
        return _page(request, form, status=400 if form.is_bound else 200)
    _refresh(request, now=timezone.now())
    return HttpResponseRedirect(_next(request))


def _refresh(request: HttpRequest, *, now: datetime) -> None:
    # A stolen session key must not become a fresh one.
    request.session.cycle_key()
    note(request, now=now)


def _next(request: HttpRequest) -> str:
    """The address in `next` if it is on this site."""
    to = request.GET.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(to, {request.get_host()}, require_https=request.is_secure())
    return to if is_ours else reverse("admin:index")


def _page(
    request: HttpRequest, form: PasswordForm, *, status: int, carried: list[tuple[str, str]] | None = None
) -> TemplateResponse:
    # Operators without a password sign in at their provider again.
    to = _next(request) if carried is None else request.path
    uses_provider = provider_name() and not request.user.has_usable_password()  # type: ignore[union-attr]
    context = {
        **admin.site.each_context(request),
        "title": _("Confirm your password"),
        "provider": provider_name(),
        "provider_link": provider_link(to=to, again=True) if uses_provider else "",
        "form": form,
        "carried": carried or [],
    }
    return TemplateResponse(request, "memories/fresh_password.html", context, status=status)
