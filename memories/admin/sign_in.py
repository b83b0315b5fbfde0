"""Signing in: Django's form; where a second factor is on, its code after that; and an identity provider, if one is set.

django-allauth does the second and the third. What it would say, mail or let people make by themselves is turned off.
"""

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

from memories.admin import fresh, lifetime, lockout
from memories.models import Operator


class SignInView(LoginView):
    """The name and the password; the code of a second factor follows where the operator has one."""

    template_name = "admin/login.html"

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        if settings.MEMORYHUB_SECOND_FACTOR == "off":
            signed_in = super().form_valid(form)
            begin(self.request)
            return signed_in
        to = self.get_success_url()
        answer: HttpResponse = perform_login(self.request, form.get_user(), email_verification="none", redirect_url=to)
        return answer


def begin(request: HttpRequest) -> None:
    """Note when somebody signed in, by which way ever."""
    now = timezone.now()
    lifetime.begin(request, now=now)
    fresh.note(request, now=now)


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth has no types
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def is_reauthentication_required(self, *, app: str, **more: Any) -> bool:
        # second_factor.Gate asks for a fresh password, as everywhere else.
        return False

    def get_login_stages(self) -> list[str]:
        return [] if settings.MEMORYHUB_SECOND_FACTOR == "off" else ["allauth.mfa.stages.AuthenticateStage"]

    def post_login(self, request: HttpRequest, user: Any, **about: Any) -> HttpResponse:
        begin(request)
        answer: HttpResponse = super().post_login(request, user, **about)
        return answer

    def respond_user_inactive(self, request: HttpRequest, user: Any) -> HttpResponse:
        return _back(request)

    def get_client_ip(self, request: HttpRequest) -> str:
        return lockout.address_of(request) or "unknown"

    def add_message(self, *args: Any, **kwargs: Any) -> None:
        """Nothing: the pages say it."""

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Nothing: the hub sends no mail."""


class ProviderAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]  # allauth has no types
    """Whom the provider vouches for is the operator with that mail address; nobody is made by signing in."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        return False

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        operator = sociallogin.user if sociallogin.is_existing else _vouched_for(sociallogin)
        if operator is None or not (operator.is_active and operator.is_staff):
            raise ImmediateHttpResponse(_back(request))
        if not sociallogin.is_existing:
            # From now on the provider's own id of this person counts, whatever their address becomes.
            sociallogin.connect(request, operator)

    def on_authentication_error(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        messages.error(request, _("Signing in did not work: try again, or look at the settings of the provider."))
        raise ImmediateHttpResponse(HttpResponseRedirect(reverse("admin:login")))


def _vouched_for(sociallogin: Any) -> Operator | None:
    """The one operator with an address that the provider has verified."""
    # A provider may write the claim as a word.
    verified = [address.email for address in sociallogin.email_addresses if str(address.verified).lower() == "true"]
    found = list(Operator.objects.filter(email__iexact=verified[0])[:2]) if verified else []
    return found[0] if len(found) == 1 else None


def _back(request: HttpRequest) -> HttpResponse:
    messages.error(request, _("No operator may sign in with this account: ask an administrator to add its address."))
    return HttpResponseRedirect(reverse("admin:login"))
