"""API keys: made in a form, shown once in its answer, revoked, never edited."""

from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget, UnfoldAdminSelectWidget

from memories import curation
from memories.admin import cells
from memories.admin.columns import column
from memories.admin.fields import DayInput, LineField
from memories.admin.key_rotation import RotatablePage
from memories.admin.page import VerbForm, actor_of
from memories.admin.reach import tenants_of
from memories.admin.wording import KEY_STATES, KINDS
from memories.audit import Actor
from memories.exceptions import Conflict
from memories.models import APIKey, Operator, Scope, Tenant


class KeyForm(forms.Form):
    tenant = forms.ModelChoiceField(
        Tenant.objects.none(),
        label=_("Tenant"),
        widget=UnfoldAdminSelectWidget,
        empty_label=_("Choose a tenant"),
    )
    name = LineField(max_length=100, label=_("Name"), help_text=_("What uses it, like support-bot."))
    scopes = forms.MultipleChoiceField(
        label=_("Scopes"),
        choices=Scope.choices,
        initial=[Scope.INGEST, Scope.READ],
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text=_("Give only what the application needs."),
    )
    expires_on = forms.DateField(
        required=False,
        label=_("Expires on"),
        widget=DayInput,
        help_text=_("The key is refused from the start of this day in your time zone; empty: it does not expire."),
    )

    def __init__(self, *args: Any, operator: Operator | AnonymousUser, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["tenant"].queryset = tenants_of(operator)  # type: ignore[attr-defined]  # of a choice of rows

    def clean_expires_on(self) -> datetime | None:
        day = self.cleaned_data["expires_on"]
        if day is None:
            return None
        moment = timezone.make_aware(datetime(day.year, day.month, day.day))  # noqa: DTZ001  (the operator's zone)
        if moment <= timezone.now():
            raise forms.ValidationError(gettext("This day has begun already: name a later one."), code="past")
        return moment


class RevokeForm(VerbForm):
    needs_fresh_password = True

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        curation.revoke_api_key(key=self.record, actor=actor, now=now)
        said = gettext("%(key)s is revoked: requests with it are answered 401 from now on.")
        return said % {"key": self.record}


class KeyPage(RotatablePage):
    page_template = "memories/key.html"
    verbs: ClassVar[dict[str, type[VerbForm]]] = {"revoke": RevokeForm, **RotatablePage.verbs}
    list_display = ("key", "tenant", "scopes_shown", "state", "used", "created")
    list_filter = ("tenant",)
    list_select_related = ("tenant", "successor")
    search_fields = ("name", "prefix")
    search_help_text = _("Search by name or prefix")
    ordering = ("-created_at",)
    empty_title = _("No API keys yet")
    empty_hint = _("An application needs one to post turns and to read contexts.")

    @column(_("Key"))
    def key(self, key: APIKey) -> Any:
        return cells.two_lines(key.name or str(key), str(key) if key.name else "")

    @column(_("Scopes"))
    def scopes_shown(self, key: APIKey) -> str:
        return ", ".join(key.scopes)

    @column(_("State"), label=KINDS)
    def state(self, key: APIKey) -> tuple[str, str]:
        state = state_of(key, now=timezone.now())
        return state, str(KEY_STATES[state])

    @column(_("Last used"), ordering="last_used_at")
    def used(self, key: APIKey) -> Any:
        return cells.moment(key.last_used_at)

    @column(_("Made"), ordering="created_at")
    def created(self, key: APIKey) -> Any:
        return cells.moment(key.created_at)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("memories.add_apikey")

    def gather(self, request: HttpRequest, record: APIKey) -> dict[str, Any]:
        state = state_of(record, now=timezone.now())
        return {
            "key": record,
            "state": state,
            "state_shown": KEY_STATES[state],
            "predecessor": APIKey.objects.filter(successor=record).first(),
        }

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The form; a valid one is answered with the plaintext itself, which no redirect could carry unstored."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = KeyForm(request.POST if request.method == "POST" else None, operator=request.user)
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("New API key"),
            "opts": self.opts,
            "form": form,
        }
        if not form.is_valid():
            return TemplateResponse(request, "memories/key_add.html", context, status=400 if form.is_bound else 200)
        try:
            key, plaintext = _create(form.cleaned_data, actor=actor_of(request), now=timezone.now())
        except Conflict as error:
            form.add_error("tenant", error.detail)
            return TemplateResponse(request, "memories/key_add.html", context, status=error.status)
        return self.shown(request, key, plaintext)


def state_of(key: APIKey, *, now: datetime) -> str:
    """active, expired or revoked."""
    if key.revoked_at:
        return "revoked"
    return "expired" if key.expires_at and key.expires_at <= now else "active"


def _create(data: dict[str, Any], *, actor: Actor, now: datetime) -> tuple[APIKey, str]:
    return curation.create_api_key(
        tenant=data["tenant"],
        name=data["name"],
        scopes=data["scopes"],
        expires_at=data["expires_on"],
        actor=actor,
        now=now,
    )
