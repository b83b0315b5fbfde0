"""The second factor: codes of an authenticator app and recovery codes. allauth.mfa with our look and our rules."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from allauth.account.internal.flows.login import get_authentication_records
from allauth.core import context
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from allauth.mfa.base.internal.flows import check_rate_limit
from allauth.mfa.models import Authenticator
from axes.handlers.proxy import AxesProxyHandler
from django.conf import settings
from django.contrib import admin
from django.contrib.auth.signals import user_login_failed
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.deprecation import MiddlewareMixin
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminTextInputWidget

from memories.admin.access import fresh
from memories.admin.site.middleware import ADMIN
from memories.conf import second_factor_keys as keys
from memories.curation.access.second_factors import use_second_factor
from memories.models import Operator

TITLES = {
    "mfa_index": gettext_lazy("Second factor"),
    "mfa_authenticate": gettext_lazy("Enter your code"),
    "mfa_activate_totp": gettext_lazy("Set up an authenticator app"),
    "mfa_deactivate_totp": gettext_lazy("Remove the authenticator app"),
    "mfa_view_recovery_codes": gettext_lazy("Recovery codes"),
    "mfa_generate_recovery_codes": gettext_lazy("New recovery codes"),
}
UNREADABLE = gettext_lazy(
    "The hub no longer has the key that encrypts your second factor, so no code can be checked. The person who runs "
    "the hub can add that key to MEMORYHUB_MFA_KEY_FALLBACKS, or an administrator can remove your second factor."
)
# Pages for operators who must set up a second factor first.
OPEN_PAGES = ("admin:login", "admin:logout", "admin:fresh_password", "admin:jsi18n")


class Adapter(DefaultMFAAdapter):  # type: ignore[misc]  # allauth has no types
    def encrypt(self, text: str) -> str:
        """With a key of the settings: the database alone is not enough to compute codes."""
        return keys.encrypt(text)

    def decrypt(self, encrypted_text: str) -> str:
        """Errors: Unreadable. Never an empty text, for which allauth would compute codes that everybody knows."""
        return keys.decrypt(encrypted_text)

    def can_delete_authenticator(self, authenticator: Authenticator) -> bool:
        return bool(settings.MEMORYHUB_SECOND_FACTOR != "required")


class Codes:
    """A form with a code. Wrong codes lock the name out as wrong passwords do. A used code is wrong."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        attrs = {"autocomplete": "one-time-code", "autofocus": True, "spellcheck": "false"}
        self.fields["code"].widget = UnfoldAdminTextInputWidget(attrs=attrs)  # type: ignore[attr-defined]
        self.fields["code"].label = _("Code")  # type: ignore[attr-defined]

    def clean_code(self) -> str:
        """Replaces allauth's check, which knows only the codes used in its own process."""
        user, credentials = self.user, {"username": self.user.get_username()}  # type: ignore[attr-defined]
        if not AxesProxyHandler.is_allowed(context.request, credentials):
            context.request.axes_locked_out = True
            raise ValidationError(_("Too many wrong codes."), code="locked")
        clear = check_rate_limit(user)
        code: str = self.cleaned_data["code"]  # type: ignore[attr-defined]
        failure = ValidationError(_("The code is wrong or was already used."), code="code")
        try:
            factor = use_second_factor(operator_id=user.pk, code=code, now=timezone.now())
        except keys.Unreadable:
            factor, failure = None, ValidationError(UNREADABLE, code="unreadable")
        if factor is None:
            user_login_failed.send(sender=__name__, credentials=credentials, request=context.request)
            raise failure
        clear()
        self.authenticator, factor.user = factor, user
        return code


class CodeForm(Codes, AuthenticateForm):  # type: ignore[misc]  # allauth has no types
    """At sign-in."""


class AgainForm(Codes, ReauthenticateForm):  # type: ignore[misc]  # allauth has no types
    """For signed-in operators."""


class Gate(MiddlewareMixin):
    """The second factor's pages need a fresh password; all others need a second factor, if it is required."""

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: Any, kwargs: Any
    ) -> HttpResponse | None:
        # Before any address is looked up: requests of the API come by here.
        if not request.path_info.startswith(ADMIN):
            return None
        mode = settings.MEMORYHUB_SECOND_FACTOR
        if request.path_info.startswith(reverse("mfa_index")):
            if mode == "off":
                raise Http404
            return fresh.required(request) if request.user.is_authenticated else None
        if mode == "required" and _must_set_up(request):
            return HttpResponseRedirect(reverse("mfa_activate_totp"))
        return None

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Explain what to do when the stored second factor cannot be decrypted."""
        if not isinstance(exception, keys.Unreadable):
            return None
        context = {"heading": _("This second factor cannot be read"), "text": UNREADABLE}
        return render(request, "memories/error_page.html", context, status=HTTPStatus.CONFLICT)


def frame(request: HttpRequest) -> dict[str, Any]:
    """Context processor: the admin's frame for the second factor's pages, which are views of allauth."""
    match = getattr(request, "resolver_match", None)
    title = TITLES.get(match.url_name or "") if match else None
    return {**admin.site.each_context(request), "title": title} if title else {}


def _must_set_up(request: HttpRequest) -> bool:
    """Whether the operator signed in with a password and has no second factor. A provider has its own."""
    operator = request.user
    if not isinstance(operator, Operator) or request.path_info in map(reverse, OPEN_PAGES):
        return False
    if any(record["method"] == "socialaccount" for record in get_authentication_records(request, operator)):
        return False
    return not Authenticator.objects.filter(user=operator, type=Authenticator.Type.TOTP).exists()
