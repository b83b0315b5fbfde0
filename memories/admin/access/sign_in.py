"""Sign-in: Django's form, then the code of a second factor if it is on; or an identity provider if one is set.

django-allauth handles second factor and provider. Its messages, mails and sign-up are turned off.
"""

from datetime import UTC, datetime
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.utils import perform_login
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from memories.admin.access import fresh, identity, lifetime, lockout
from memories.curation.access.provider_links import link_provider
from memories.exceptions import MemoryHubError
from memories.models import Operator

NEVER = datetime.fromtimestamp(0, UTC)


class SignInView(LoginView):
    """Name and password. Operators with a second factor then enter a code."""

    template_name = "admin/login.html"

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        if settings.MEMORYHUB_SECOND_FACTOR == "off":
            signed_in = super().form_valid(form)
            begin(self.request)
            lockout.remember(signed_in, form.get_user())
            return signed_in
        to = self.get_success_url()
        return perform_login(self.request, form.get_user(), email_verification="none", redirect_url=to)  # type: ignore[no-any-return]


def begin(request: HttpRequest, *, sociallogin: Any = None) -> None:
    """Record the sign-in, and when the operator last proved who they are.

    A provider may accept somebody who is signed in there already. Then its time counts; without one the proof is
    never fresh.
    """
    now = timezone.now()
    lifetime.begin(request, now=now)
    proved_at = identity.signed_in_at(sociallogin, now=now) or NEVER if sociallogin else now
    fresh.note(request, now=proved_at)


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth has no types
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def is_reauthentication_required(self, *, app: str, **more: Any) -> bool:
        # second_factor.Gate asks for a fresh password.
        return False

    def get_login_stages(self) -> list[str]:
        return [] if settings.MEMORYHUB_SECOND_FACTOR == "off" else ["allauth.mfa.stages.AuthenticateStage"]

    def post_login(self, request: HttpRequest, user: Any, **about: Any) -> HttpResponse:
        begin(request, sociallogin=(about.get("signal_kwargs") or {}).get("sociallogin"))
        response: HttpResponse = super().post_login(request, user, **about)
        lockout.remember(response, user)
        return response

    def respond_user_inactive(self, request: HttpRequest, user: Any) -> HttpResponse:
        return _back(request)

    def get_client_ip(self, request: HttpRequest) -> str:
        return lockout.counted_address_of(request) or "unknown"

    def add_message(self, *args: Any, **kwargs: Any) -> None:
        """Nothing: our pages have their own messages."""

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Nothing: the hub sends no mail."""


class ProviderAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]  # allauth has no types
    """An operator is found by the mail address that the provider verified. Signing in creates nobody."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        return False

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        operator = sociallogin.user if sociallogin.is_existing else _operator_by_email(sociallogin)
        if operator is None or not (operator.is_active and operator.is_staff) or not _is_consistent(sociallogin):
            raise ImmediateHttpResponse(_back(request))
        if request.user == operator:
            _check_proof(request, sociallogin)
        if not sociallogin.is_existing:
            # From now on the provider's id of this person counts, even if the address changes.
            try:
                link_provider(operator_id=operator.pk, account=sociallogin.account, now=timezone.now())
            except MemoryHubError as error:
                messages.error(request, error.detail)
                raise ImmediateHttpResponse(HttpResponseRedirect(reverse("admin:login"))) from error
            sociallogin.user = operator

    def on_authentication_error(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        messages.error(request, _("Signing in failed. Try again, or check the settings of the identity provider."))
        raise ImmediateHttpResponse(HttpResponseRedirect(reverse("admin:login")))


def _is_consistent(sociallogin: Any) -> bool:
    """Whether the ID token and the other claims are of the same account."""
    token = sociallogin.account.extra_data.get("id_token") or {}
    return bool(str(token.get("sub", sociallogin.account.uid)) == sociallogin.account.uid)


def _check_proof(request: HttpRequest, sociallogin: Any) -> None:
    """A signed-in operator proves again who they are. Errors: ImmediateHttpResponse if the proof is too old."""
    now = timezone.now()
    proved_at = identity.signed_in_at(sociallogin, now=now)
    if proved_at and now - proved_at <= fresh.FRESH:
        return
    if proved_at:
        message = _("The identity provider did not check who you are. Sign out there, then try again.")
    else:
        message = _(
            "The identity provider does not say when you signed in (auth_time), so this sign-in cannot "
            "replace a password."
        )
    messages.error(request, message)
    to = sociallogin.state.get("next") or reverse("admin:index")
    raise ImmediateHttpResponse(fresh.redirect_to_form(to))


def _operator_by_email(sociallogin: Any) -> Operator | None:
    """The only operator with the address that the provider verified."""
    # Some providers write the claim as a string.
    verified = [address.email for address in sociallogin.email_addresses if str(address.verified).lower() == "true"]
    found = list(Operator.objects.filter(email__iexact=verified[0])[:2]) if verified else []
    return found[0] if len(found) == 1 else None


def _back(request: HttpRequest) -> HttpResponse:
    messages.error(request, _("No operator has this account. Ask an administrator to add its address."))
    return HttpResponseRedirect(reverse("admin:login"))
