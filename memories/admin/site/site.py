"""The admin site: which pages it has, and the frame that they share."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from django.contrib.admin import ModelAdmin
from django.contrib.auth.models import Group
from django.contrib.auth.views import PasswordChangeView
from django.db import connection
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.template.response import SimpleTemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from unfold.sites import UnfoldAdminSite

from memories import models
from memories.admin.access import fresh, identity, invitations, preferences, tenant_in_view
from memories.admin.access.keys import KeyPage, ManagementKeyPage
from memories.admin.access.operators import GroupPage, OperatorPage
from memories.admin.access.sign_in import SignInView
from memories.admin.attachments.pages import PAGES as ATTACHMENTS
from memories.admin.cases.pages import CasePage
from memories.admin.dashboard import first_run
from memories.admin.dashboard import page as dashboard
from memories.admin.dreams.pages import DreamPage
from memories.admin.episodes.pages import EpisodePage
from memories.admin.facts.pages import FactPage
from memories.admin.files.pages import MemoryFilePage
from memories.admin.graph.entities import EntityPage
from memories.admin.graph.pages import TriplePage
from memories.admin.groups.pages import MemoryGroupPage
from memories.admin.imports.pages import ImportPage
from memories.admin.people.pages import PersonPage
from memories.admin.recall import playground, turn_search
from memories.admin.recall.logged import LoggedContextPage
from memories.admin.review.pages import ReviewPage
from memories.admin.runs import parked, previewing
from memories.admin.runs.pages import BackupPage, RunPage
from memories.admin.runs.sessions import SessionPage
from memories.admin.site import help_page, model_banner, palette
from memories.admin.site.page import HubModelAdmin
from memories.admin.skills.pages import SkillPage
from memories.admin.store.pages import StoreItemPage
from memories.admin.tenants import (
    content_policy,
    forgetting,
    language_model,
    profile_schemas,
    retention,
    rollback,
)
from memories.admin.tenants.agents import AgentPage
from memories.admin.tenants.pages import TenantPage
from memories.admin.trail import seals
from memories.admin.trail.pages import TrailPage
from memories.admin.trajectories.pages import TrajectoryPage
from memories.admin.webhooks.pages import WebhookPage
from memories.kinds import PLAIN
from memories.time_zones import zone_or_utc
from memoryhub import VERSION

View = Callable[..., HttpResponseBase]
MODEL_PAGES: tuple[tuple[type[Model], type[HubModelAdmin]], ...] = (
    (models.ReviewItem, ReviewPage),
    (models.EndUser, PersonPage),
    (models.Fact, FactPage),
    (models.Episode, EpisodePage),
    (models.Session, SessionPage),
    (models.ExtractionRun, RunPage),
    (models.LoggedContext, LoggedContextPage),
    (models.MemoryFile, MemoryFilePage),
    *ATTACHMENTS,
    *(page for kind in PLAIN if kind.plain for page in import_module(kind.plain.admin).PAGES),
    (models.Trajectory, TrajectoryPage),
    (models.GraphTriple, TriplePage),
    (models.GraphEntity, EntityPage),
    (models.Dream, DreamPage),
    (models.Skill, SkillPage),
    (models.Import, ImportPage),
    (models.MemoryGroup, MemoryGroupPage),
    (models.StoreItem, StoreItemPage),
    (models.DecayPass, forgetting.DecayPassPage),
    (models.Backup, BackupPage),
    (models.PrivacyCase, CasePage),
    (models.APIKey, KeyPage),
    (models.ManagementKey, ManagementKeyPage),
    (models.Tenant, TenantPage),
    (models.Agent, AgentPage),
    (models.WebhookEndpoint, WebhookPage),
    (models.AuditEvent, TrailPage),
    (models.Operator, OperatorPage),
    (Group, GroupPage),
)
# Modules with pages of no model; each has urls().
OTHER_PAGES = (
    dashboard,
    rollback,
    forgetting,
    fresh,
    invitations,
    preferences,
    tenant_in_view,
    playground,
    turn_search,
    parked,
    previewing,
    seals,
    retention,
    language_model,
    content_policy,
    profile_schemas,
    help_page,
    model_banner,
)


@contextmanager
def _planned_for_values() -> Iterator[None]:
    """Prepare no statement, so that PostgreSQL plans each for its values.

    It plans a prepared one for all values once that seems as good. Such a plan uses no index of the rows with one
    status: of a list of facts it read all of them.
    """
    connection.ensure_connection()
    opened = connection.connection
    usual, opened.prepare_threshold = opened.prepare_threshold, None
    try:
        yield
    finally:
        opened.prepare_threshold = usual


class HubAdminSite(UnfoldAdminSite):  # type: ignore[misc]  # Unfold has no types
    index_title = gettext_lazy("Dashboard")
    index_template = "memories/dashboard.html"

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for model, page in MODEL_PAGES:
            self.register(model, page)

    def register(
        self, model_or_iterable: Any, admin_class: type[ModelAdmin[Model]] | None = None, **options: Any
    ) -> None:
        """Register our own pages only.

        Other apps register on the default site by themselves. The pages of django-q2 unpickle what they show, and
        Unfold does not style Django's.
        """
        if admin_class is not None and issubclass(admin_class, HubModelAdmin):
            super().register(model_or_iterable, admin_class, **options)

    def admin_view(self, view: View, cacheable: bool = False) -> View:
        """Django's wrapper, with all times in the operator's time zone, and lists of the tenant in view."""
        inner: View = super().admin_view(view, cacheable)

        def in_own_zone(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            tenant_in_view.apply(request)
            with timezone.override(zone_or_utc(getattr(request.user, "time_zone", ""))), _planned_for_values():
                response = inner(request, *args, **kwargs)
                if isinstance(response, SimpleTemplateResponse):
                    # Django would render after the view, outside the override.
                    response.render()
            return response

        return in_own_zone

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        context = super().each_context(request)
        chosen = getattr(request.user, "tenant_in_view", None)
        off = model_banner.shown_to(request)
        return {**context, "model_is_off": off, "tenant_in_view": chosen, "hub_version": VERSION}

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Only of the page of one app. Django asks for all of them for each page, whose menu is the sidebar's."""
        return super().get_app_list(request, app_label) if app_label else []

    def get_urls(self) -> list[Any]:
        # No record of ours has an address on a site of its own, and Django's view fails for ids that are no number.
        django = [pattern for pattern in super().get_urls() if getattr(pattern, "name", "") != "view_on_site"]
        return [*(pattern for module in OTHER_PAGES for pattern in module.urls()), *django]

    def autocomplete_view(self, request: HttpRequest) -> HttpResponseBase:
        """Nothing: no form of ours uses it, and its search would bypass the filters of the lists."""
        raise Http404

    def search(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponseBase:
        """Ours instead of Unfold's, which reads the query from the address and caches the results."""
        return palette.search(request)

    @method_decorator(never_cache)
    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponseBase:
        """Django's page with our view. Signed-in operators go on to the dashboard."""
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
            form_class=preferences.OwnPasswordForm,
            success_url=reverse("admin:password_change_done"),
            template_name="registration/password_change_form.html",
            extra_context={**self.each_context(request), **(extra_context or {})},
        )
        return view(request)

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        context = dashboard.overview(request, now=timezone.now()) | first_run.checklist(request)
        return super().index(request, {**context, **(extra_context or {})})
