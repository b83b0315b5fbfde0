"""The admin site: our pages only, each told in the operator's own time zone."""

from collections.abc import Callable
from typing import Any

from django.contrib.admin import ModelAdmin
from django.contrib.auth.views import PasswordChangeView
from django.db.models import Model
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.template.response import SimpleTemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from unfold.sites import UnfoldAdminSite

from memories import conf
from memories.admin import (
    audit_chains,
    dashboard,
    forgetting,
    fresh,
    identity,
    keeping_days,
    palette,
    parked,
    preferences,
    recalled,
    rollback,
)
from memories.admin.own_password import OwnPasswordForm
from memories.admin.page import Page
from memories.admin.sign_in import SignInView
from memories.pipeline.zones import zone_or_utc

View = Callable[..., HttpResponseBase]
# Pages beside those of the models.
ROOMS = (dashboard, rollback, forgetting, fresh, preferences, recalled, parked, audit_chains, keeping_days)


class HubAdminSite(UnfoldAdminSite):  # type: ignore[misc]  # Unfold has no types
    index_title = gettext_lazy("Dashboard")
    index_template = "memories/dashboard.html"

    def register(
        self, model_or_iterable: Any, admin_class: type[ModelAdmin[Model]] | None = None, **options: Any
    ) -> None:
        """Take our own pages only.

        Other apps register on the default site by themselves: django-q2's pages unpickle what they show, and
        Django's own are not drawn by Unfold.
        """
        if admin_class is not None and issubclass(admin_class, Page):
            super().register(model_or_iterable, admin_class, **options)

    def admin_view(self, view: View, cacheable: bool = False) -> View:
        """Django's wrapper, with every time on the page told in the operator's zone."""
        inner: View = super().admin_view(view, cacheable)

        def in_own_zone(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            with timezone.override(zone_or_utc(getattr(request.user, "time_zone", ""))):
                response = inner(request, *args, **kwargs)
                if isinstance(response, SimpleTemplateResponse):
                    # Rendered here, while the zone is in force, instead of after the view.
                    response.render()
            return response

        return in_own_zone

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        context: dict[str, Any] = super().each_context(request)
        return {**context, "llm_mode": conf.llm().mode}

    def get_urls(self) -> list[Any]:
        own = [address for room in ROOMS for address in room.urls()]
        return [*own, *super().get_urls()]

    def search(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponseBase:
        """Ours instead of Unfold's, which takes the words from the address and caches what it found."""
        return palette.search(request)

    @method_decorator(never_cache)
    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponseBase:
        """Django's page with our view behind it; whoever is signed in goes on to the dashboard."""
        if request.method == "GET" and self.has_permission(request):
            return HttpResponseRedirect(reverse("admin:index"))
        to = request.POST.get("next") or request.GET.get("next") or reverse("admin:index")
        context = {
            **self.each_context(request),
            "title": _("Sign in"),
            "app_path": request.get_full_path(),
            "username": request.user.get_username(),
            "next": to,
            "provider": identity.provider_name(),
            "provider_link": identity.provider_link(to=to),
        }
        request.current_app = self.name
        return SignInView.as_view(authentication_form=self.login_form, extra_context=context)(request)

    def password_change(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponseBase:
        """Django's own view with a form that calls our verb."""
        request.current_app = self.name
        view = PasswordChangeView.as_view(
            form_class=OwnPasswordForm,
            success_url=reverse("admin:password_change_done"),
            template_name="registration/password_change_form.html",
            extra_context={**self.each_context(request), **(extra_context or {})},
        )
        return view(request)

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        return super().index(request, {**dashboard.overview(request.user, now=timezone.now()), **(extra_context or {})})
