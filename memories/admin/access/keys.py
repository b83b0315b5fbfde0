"""API keys: created, rotated, extended and revoked, never edited. A plaintext is shown once, in the response itself.
Management keys: revoked."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
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

from memories.admin.access import fresh
from memories.admin.access.tenant_scope import tenants_of
from memories.admin.dashboard import first_run
from memories.admin.lists import cells
from memories.admin.lists.columns import column, moment_column
from memories.admin.site.fields import AgentField, DayInput, LineField, PersonField, TenantField
from memories.admin.site.page import RecordPage, VerbForm, actor_of, render_page
from memories.admin.site.wording import KEY_STATES, KINDS
from memories.audit import Actor
from memories.curation.access.keys import (
    DEFAULT_DAYS,
    Binding,
    create_api_key,
    put_off_end,
    revoke_api_key,
    revoke_management_key,
    rotate_api_key,
)
from memories.curation.people.external_ids import LONGEST_ID
from memories.exceptions import Conflict, InvalidInput, MemoryHubError
from memories.models import APIKey, ManagementKey, MemoryOf, Operator, Scope, Tenant, WritesAs
from memories.models.people.people import NOBODY

# Keys that expire within this time have a state of their own on pages.
SOON = timedelta(days=30)
# Minutes from now until the old key is refused.
ENDS = (
    ("0", _("Immediately")),
    ("60", _("In an hour")),
    ("1440", _("In a day")),
    ("10080", _("In a week")),
    ("43200", _("In 30 days")),
)

NOT_PRIVACY = _(
    "A key with the privacy scope can open privacy cases. Only operators who can open cases can create such a key."
)


class KeyForm(forms.Form):
    tenant = TenantField()
    name = LineField(
        max_length=100, label=_("Name"), help_text=_("The application that uses the key, such as support-bot.")
    )
    scopes = forms.MultipleChoiceField(
        label=_("Scopes"),
        choices=Scope.choices,
        initial=[Scope.INGEST, Scope.READ],
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text=_("Give only what the application needs."),
    )
    user_id = PersonField(
        required=False,
        max_length=LONGEST_ID,
        strip=False,
        label=_("Only for one end user"),
        help_text=_(
            "The id that the application uses for the end user (user_id). Leave empty for all end users of the tenant."
        ),
    )
    agent_id = AgentField(
        required=False,
        max_length=LONGEST_ID,
        label=_("Only for one agent"),
        help_text=_("The agent's id (agent_id). Leave empty for all agents."),
    )
    writes_as = forms.ChoiceField(
        required=False,
        label=_("Statements count as"),
        choices=[("", _("The agent's if the key is limited to one agent, otherwise the user's")), *WritesAs.choices],
        widget=UnfoldAdminSelectWidget,
        help_text=_(
            "What an agent states about an end user waits for review. A request can lower this trust, never raise it. "
            "If a key for one agent writes as the user, that agent is believed like the user."
        ),
    )
    memory_of = forms.ChoiceField(
        required=False,
        label=_("Memory belongs to"),
        choices=[("", _("As the tenant chose")), *MemoryOf.choices],
        widget=UnfoldAdminSelectWidget,
        help_text=_("Whose memory a session becomes if this key opens it. Sessions that exist keep theirs."),
    )
    expires_on = forms.DateField(
        required=False,
        label=_("Expires on"),
        initial=lambda: timezone.localdate() + timedelta(days=DEFAULT_DAYS),
        widget=DayInput,
        help_text=_(
            "The key stops working at the start of this day in your time zone. Leave empty for a key "
            "that does not expire."
        ),
    )

    def __init__(self, *args: Any, operator: Operator | AnonymousUser, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.operator = operator
        self.fields["tenant"].queryset = tenants_of(operator)  # type: ignore[attr-defined]  # of a choice of rows

    def clean_scopes(self) -> list[str]:
        scopes: list[str] = self.cleaned_data["scopes"]
        if not may_give(self.operator, scopes):
            raise forms.ValidationError(NOT_PRIVACY, code="permission")
        return scopes

    def clean(self) -> dict[str, Any]:
        data = self.cleaned_data
        try:
            _binding_of(data).columns()
        except InvalidInput as error:
            for fault in error.faults:
                self.add_error(fault.pointer, fault.detail)
        return data

    def clean_expires_on(self) -> datetime | None:
        day = self.cleaned_data["expires_on"]
        if day is None:
            return None
        moment = timezone.make_aware(datetime(day.year, day.month, day.day))  # noqa: DTZ001  (the operator's zone)
        if moment <= timezone.now():
            raise forms.ValidationError(gettext("This day has already begun. Choose a later day."), code="past")
        return moment


class RevokeForm(VerbForm):
    needs_fresh_password = True
    revoke: ClassVar[Callable[..., None]] = staticmethod(revoke_api_key)

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        self.revoke(key=self.record, actor=actor, now=now)
        done = gettext("%(key)s is revoked. Requests with it now get 401.")
        return done % {"key": self.record}


class RotateForm(VerbForm):
    needs_fresh_password = True
    # Shown in the response and stored nowhere.
    successor: APIKey
    plaintext: str
    ends = forms.ChoiceField(
        label=_("This key stops working"),
        choices=ENDS,
        initial="1440",
        widget=UnfoldAdminSelectWidget,
        help_text=_("Choose a time that is long enough to update the application."),
    )

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        ends_at = now + timedelta(minutes=int(self.cleaned_data["ends"]))
        self.successor, self.plaintext = rotate_api_key(key=self.record, ends_at=ends_at, actor=actor, now=now)
        return gettext("The key is rotated.")


class PutOffForm(VerbForm):
    ends = forms.ChoiceField(
        label=_("This key stops working"), choices=ENDS[1:], initial="1440", widget=UnfoldAdminSelectWidget
    )
    # The end that the operator saw.
    expected = forms.CharField(widget=forms.HiddenInput, required=False)

    def values_of(self, record: APIKey) -> dict[str, Any]:
        return {"expected": record.expires_at.isoformat() if record.expires_at else ""}

    def clean_expected(self) -> datetime | None:
        try:
            return datetime.fromisoformat(self.cleaned_data["expected"])
        except ValueError:
            return None

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        ends_at, expected = now + timedelta(minutes=int(self.cleaned_data["ends"])), self.cleaned_data["expected"]
        put_off_end(key=self.record, ends_at=ends_at, expected=expected, actor=actor, now=now)
        return gettext("The key now expires later.")


class _KeysPage(RecordPage):
    """What the pages of both kinds of keys have."""

    search_fields = ("name", "prefix")
    search_help_text = _("Search by name or prefix")
    ordering = ("-created_at",)
    expires = moment_column(_("Expires"), "expires_at", none=_("never"))
    used = moment_column(_("Last used"), "last_used_at", none=_("never"))
    created = moment_column(_("Created"), "created_at")

    @column(_("State"), label=KINDS)
    def state(self, key: APIKey | ManagementKey) -> tuple[str, str]:
        state = _shown_state(key, now=timezone.now())
        return state, str(KEY_STATES[state])

    def gather(self, request: HttpRequest, record: Any) -> dict[str, Any]:
        state = _shown_state(record, now=timezone.now())
        return {"key": record, "state": "active" if state == "expiring" else state, "state_shown": KEY_STATES[state]}


class KeyPage(_KeysPage):
    page_template = "memories/key.html"
    verbs: ClassVar[dict[str, type[VerbForm]]] = {"revoke": RevokeForm, "rotate": RotateForm, "put_off": PutOffForm}
    csv_columns = (
        "id", "tenant__slug", "name", "prefix", "scopes", "agent_id", "writes_as", "speaks_for_user", "memory_of",
        "created_at", "expires_at", "revoked_at", "last_used_at",
    )  # fmt: skip
    list_display = ("key", "tenant", "scopes_shown", "only_for", "voice", "state", "expires", "used", "created")
    list_filter = ("tenant", "writes_as")
    list_select_related = ("tenant", "successor")
    empty_title = _("No API keys yet")
    empty_hint = _("An application needs an API key to post turns and to read contexts.")

    @column(_("Key"))
    def key(self, key: APIKey) -> Any:
        return cells.two_lines(key.name or str(key), str(key) if key.name else "")

    @column(_("Scopes"))
    def scopes_shown(self, key: APIKey) -> str:
        return ", ".join(key.scopes)

    @column(_("Only for"))
    def only_for(self, key: APIKey) -> str:
        # The list does not show a person's id.
        person = gettext("an erased end user") if key.user_id == NOBODY else gettext("one end user")
        return ", ".join(name for name in (person if key.user_id else "", key.agent_id) if name) or "–"

    @column(_("Statements count as"))
    def voice(self, key: APIKey) -> Any:
        label = key.get_writes_as_display()
        if key.writes_as == WritesAs.USER and not key.speaks_for_user:
            label = f"{label} {gettext('(by MCP: the agent)')}"
        return cells.two_lines(label, gettext("Its agent speaks for the user")) if _is_trusting(key) else label

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("memories.add_apikey")

    def gather(self, request: HttpRequest, record: APIKey) -> dict[str, Any]:
        return {
            **super().gather(request, record),
            "may_rotate": may_give(request.user, record.scopes),
            "erased": record.user_id == NOBODY,
            "trusting": _is_trusting(record),
            "predecessor": APIKey.objects.filter(successor=record).first(),
        }

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The form, or the new key."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        initial = {"tenant": request.GET.get("tenant", "")}
        form = KeyForm(request.POST if request.method == "POST" else None, operator=request.user, initial=initial)
        context: dict[str, Any] = {"title": gettext("New API key"), "opts": self.opts, "form": form}
        if not tenants_of(request.user).exists():
            may_add = self.admin_site.get_model_admin(Tenant).has_add_permission(request)
            context |= {"no_tenant": True, "may_add_tenant": may_add}
        render = partial(render_page, request, "memories/key_add.html", **context)
        if not form.is_valid():
            return render(status=400 if form.is_bound else 200)
        if challenge := fresh.required(request):
            return challenge
        data = form.cleaned_data
        try:
            key, plaintext = create_api_key(
                tenant=data["tenant"],
                name=data["name"],
                scopes=data["scopes"],
                expires_at=data["expires_on"],
                binding=_binding_of(data),
                actor=actor_of(request),
                now=timezone.now(),
            )
        except MemoryHubError as error:
            form.add_error("tenant" if isinstance(error, Conflict) else "user_id", error.detail)
            return render(status=error.status)
        return self._show_plaintext(request, key, plaintext)

    def carry_out(self, request: HttpRequest, object_id: str, verb: str) -> HttpResponse:
        # Whoever rotates a key gets one with the same scopes.
        record = self.find(request, object_id, may_change=True)
        if verb == "rotate" and request.method == "POST" and not may_give(request.user, record.scopes):
            raise PermissionDenied(NOT_PRIVACY)
        return super().carry_out(request, object_id, verb)

    def answer(self, request: HttpRequest, form: VerbForm, done: str) -> HttpResponse:
        if isinstance(form, RotateForm):
            return self._show_plaintext(request, form.successor, form.plaintext)
        return super().answer(request, form, done)

    def _show_plaintext(self, request: HttpRequest, key: APIKey, plaintext: str) -> TemplateResponse:
        """The plaintext in the response itself, since a redirect would have to store it."""
        context: dict[str, Any] = {"title": gettext("The new API key"), "opts": self.opts}
        shown: dict[str, Any] = {"key": key, "plaintext": plaintext, "trusting": _is_trusting(key)}
        # Not under the name of the checklist's own line, which has no key.
        shown["line"] = first_run.curl(plaintext) if Scope.INGEST in key.scopes else ""
        checklist = {**first_run.checklist(request), "curl": ""}
        page = render_page(request, "memories/key_shown.html", **checklist, **context, **shown)
        page["Cache-Control"] = "no-store"
        return page


class RevokeManagementForm(RevokeForm):
    revoke = staticmethod(revoke_management_key)


class ManagementKeyPage(_KeysPage):
    """Management keys: listed and revoked here, made on the server alone."""

    page_template = "memories/management_key.html"
    verbs: ClassVar[dict[str, type[VerbForm]]] = {"revoke": RevokeManagementForm}
    list_display = ("key", "manages", "gives_shown", "state", "expires", "used", "created")
    list_select_related = ("tenant",)
    empty_title = _("No management keys yet")
    empty_hint = _("Whoever runs the hub makes one on the server: manage.py create_management_key --name terraform")

    @column(_("Key"))
    def key(self, key: ManagementKey) -> Any:
        return cells.two_lines(key.name, str(key))

    @column(_("Manages"))
    def manages(self, key: ManagementKey) -> str:
        return key.tenant.slug if key.tenant else gettext("all tenants")

    @column(_("Gives scopes"))
    def gives_shown(self, key: ManagementKey) -> str:
        return ", ".join(key.gives)


def may_give(operator: Operator | AnonymousUser, scopes: list[str]) -> bool:
    """Whether the operator may do what a key with these scopes opens."""
    return Scope.PRIVACY not in scopes or operator.has_perm("memories.add_privacycase")


def _binding_of(data: dict[str, Any]) -> Binding:
    """What the form says, as far as it is valid."""
    return Binding(*(data.get(name, "") for name in ("user_id", "agent_id", "writes_as", "memory_of")))


def _is_trusting(key: APIKey) -> bool:
    """Whether what one agent states with it counts as the user's words."""
    return bool(key.agent_id) and key.writes_as == WritesAs.USER


def _shown_state(key: APIKey | ManagementKey, *, now: datetime) -> str:
    """active, expiring, expired or revoked."""
    if key.revoked_at:
        return "revoked"
    if key.expires_at is None or key.expires_at > now + SOON:
        return "active"
    return "expiring" if key.expires_at > now else "expired"
