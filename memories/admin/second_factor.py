"""The second factor: codes of an authenticator app, and recovery codes; allauth.mfa with pages in our look."""

import base64
import hashlib
from collections.abc import Callable
from typing import Any

from allauth.account.internal.flows.login import get_authentication_records
from allauth.core import context
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.base.forms import AuthenticateForm
from allauth.mfa.models import Authenticator
from axes.handlers.proxy import AxesProxyHandler
from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings
from django.contrib import admin
from django.contrib.auth.signals import user_login_failed
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.deprecation import MiddlewareMixin
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminTextInputWidget

from memories.admin import fresh
from memories.models import Operator

TITLES = {
    "mfa_index": gettext_lazy("Second factor"),
    "mfa_authenticate": gettext_lazy("One more code"),
    "mfa_activate_totp": gettext_lazy("Set up an authenticator app"),
    "mfa_deactivate_totp": gettext_lazy("Remove the authenticator app"),
    "mfa_view_recovery_codes": gettext_lazy("Recovery codes"),
    "mfa_generate_recovery_codes": gettext_lazy("New recovery codes"),
}
# What is open to an operator who must set up a second factor first.
FREE = ("admin:login", "admin:logout", "admin:fresh_password", "admin:jsi18n")


class Adapter(DefaultMFAAdapter):  # type: ignore[misc]  # allauth has no types
    def encrypt(self, text: str) -> str:
        """With a key that comes from the settings: whoever reads the database alone makes no codes."""
        return _cipher().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        try:
            return _cipher().decrypt(encrypted_text.encode()).decode()
        except InvalidToken:
            # Another secret key than it was set up with: no code fits any more.
            return ""

    def can_delete_authenticator(self, authenticator: Authenticator) -> bool:
        return bool(settings.MEMORYHUB_SECOND_FACTOR != "required")


class CodeForm(AuthenticateForm):  # type: ignore[misc]  # allauth has no types
    """The code at sign-in; wrong ones lock the name out just as wrong passwords do."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        attrs = {"autocomplete": "one-time-code", "autofocus": True, "spellcheck": "false"}
        self.fields["code"].widget = UnfoldAdminTextInputWidget(attrs=attrs)
        self.fields["code"].label = _("Code")

    def clean_code(self) -> str:
        credentials = {"username": self.user.get_username()}
        if not AxesProxyHandler.is_allowed(context.request, credentials):
            context.request.axes_locked_out = True
            raise ValidationError(_("Too many wrong codes."), code="locked")
        try:
            return str(super().clean_code())
        except ValidationError:
            user_login_failed.send(sender=__name__, credentials=credentials, request=context.request)
            raise


class Gate(MiddlewareMixin):
    """Keeps the pages of the second factor behind a fresh password, and all others behind a required second factor."""

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: Any, kwargs: Any
    ) -> HttpResponse | None:
        if not request.path_info.startswith(reverse("admin:index")):
            return None
        mode = settings.MEMORYHUB_SECOND_FACTOR
        if request.path_info.startswith(reverse("mfa_index")):
            if mode == "off":
                raise Http404
            return fresh.required(request) if request.user.is_authenticated else None
        if mode == "required" and _must_set_up(request):
            return HttpResponseRedirect(reverse("mfa_activate_totp"))
        return None


def frame(request: HttpRequest) -> dict[str, Any]:
    """What the admin's frame needs on the pages of the second factor, which are views of another app."""
    match = getattr(request, "resolver_match", None)
    title = TITLES.get(match.url_name or "") if match else None
    return {**admin.site.each_context(request), "title": title} if title else {}


def _must_set_up(request: HttpRequest) -> bool:
    """Whether the operator signed in with a password, and has no second factor; a provider has its own."""
    operator = request.user
    if not isinstance(operator, Operator) or request.path_info in map(reverse, FREE):
        return False
    if any(record["method"] == "socialaccount" for record in get_authentication_records(request, operator)):
        return False
    return not Authenticator.objects.filter(user=operator, type=Authenticator.Type.TOTP).exists()


def _cipher() -> Fernet:
    digest = hashlib.sha256(b"second factor" + settings.SECRET_KEY.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(digest))
