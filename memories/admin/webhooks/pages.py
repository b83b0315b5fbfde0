"""Webhooks: the list, the form that adds one, and the page with its deliveries."""

from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, ClassVar
from urllib.parse import urlsplit

from django.core.exceptions import PermissionDenied
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memories.admin.access import fresh
from memories.admin.access.tenant_scope import tenants_of
from memories.admin.lists import cells
from memories.admin.lists.columns import column, moment_column
from memories.admin.site.page import RecordPage, VerbForm, actor_of, address, render_page, require
from memories.admin.site.private_addresses import to_allow
from memories.admin.webhooks import forms
from memories.curation.tenants.webhooks import add_webhook
from memories.exceptions import MemoryHubError
from memories.models import Event, Tenant, WebhookDelivery, WebhookEndpoint
from memories.queue.leases import WORKER_LOST
from memories.webhooks import delivering, messages
from memories.webhooks.delivering import DeliveryResult
from memories.webhooks.trying import AddressTest, try_address

CHANGE = "memories.change_webhookendpoint"
FRAGMENT = "tested"
# So many deliveries the page shows, the newest.
SHOWN = 50
COLOURS = {"active": "success", "failing": "warning", "disabled": "danger"}
STATES: Mapping[str, Promise] = {"active": _("Enabled"), "failing": _("Failing"), "disabled": _("Disabled")}
FAILURES: Mapping[str, Promise] = {
    delivering.TIMEOUT: _("no answer within 10 seconds"),
    delivering.UNREACHABLE: _("could not be reached"),
    delivering.PRIVATE: _("its address leads into a private network"),
    delivering.REFUSED: _("did not answer with a 2xx status"),
    delivering.NO_SECRET: _("no key of the hub decrypts its secret: rotate it"),
    delivering.DISABLED: _("the webhook was disabled"),
    WORKER_LOST: _("workers ended while they sent it"),
}

State = WebhookDelivery.State


def state_of(endpoint: WebhookEndpoint) -> str:
    if endpoint.disabled_at:
        return "disabled"
    return "failing" if endpoint.failures else "active"


class WebhookPage(RecordPage):
    page_template = "memories/webhook.html"
    verbs: ClassVar[dict[str, type[VerbForm]]] = {
        "update": forms.ChangeForm,
        "rotate": forms.RotateSecretForm,
        "disable": forms.DisableForm,
        "enable": forms.EnableForm,
        "remove": forms.DeleteEndpointForm,
        "send_test": forms.TestForm,
        "send_again": forms.SendAgainForm,
    }
    list_display = ("named", "tenant", "events_counted", "state", "made")
    list_filter = ("tenant",)
    list_select_related = ("tenant",)
    search_fields = ("name",)
    search_help_text = _("Search by name")
    ordering = ("-created_at", "-id")
    empty_title = _("No webhooks yet")
    empty_hint = _("A webhook tells another system of events of a tenant, such as a new fact or an erasure.")
    made = moment_column(_("Created"), "created_at")

    @column(_("Webhook"))
    def named(self, endpoint: WebhookEndpoint) -> SafeString:
        return cells.two_lines(endpoint.name, host_of(endpoint))

    @column(_("Events"))
    def events_counted(self, endpoint: WebhookEndpoint) -> str:
        return f"{len(endpoint.events)} / {len(Event.values) - 1}"

    @column(_("State"), label=COLOURS)
    def state(self, endpoint: WebhookEndpoint) -> tuple[str, str]:
        found = state_of(endpoint)
        return found, str(STATES[found])

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(CHANGE)

    def gather(self, request: HttpRequest, record: WebhookEndpoint) -> dict[str, Any]:
        now, found = timezone.now(), state_of(record)
        kept = WebhookDelivery.objects.filter(endpoint=record)
        counts = kept.aggregate(**{state: Count("pk", filter=Q(state=state)) for state in State.values})
        newest = list(kept.order_by("-occurred_at", "-pk")[:SHOWN])
        return {
            "webhook": record,
            "host": host_of(record),
            "state": found,
            "state_shown": STATES[found],
            "colour": COLOURS[found],
            "why": record.get_disabled_for_display() if record.disabled_at else "",
            "both_sign": bool(record.former_until and record.former_until > now),
            "is_readable": bool(messages.secrets_of(record, now=now)),
            "deliveries": [(one, _came_of(one)) for one in newest],
            "counts": counts,
            "most": SHOWN,
            # What was just sent is seen to arrive.
            "is_testing": any(
                (one.event, one.state, one.tried_at) == (Event.TEST, State.WAITING, None) for one in newest
            ),
            "days": delivering.KEPT.days,
        }

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The form, or the new webhook's secret."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        initial = {"tenant": request.GET.get("tenant", ""), "events": [Event.PERSON_ERASED]}
        form = forms.WebhookForm(
            request.POST if request.method == "POST" else None, operator=request.user, initial=initial
        )
        context = self._add_context(form)
        if not tenants_of(request.user).exists():
            may_add = self.admin_site.get_model_admin(Tenant).has_add_permission(request)
            context |= {"no_tenant": True, "may_add_tenant": may_add}
        render = partial(render_page, request, "memories/webhook_add.html", **context)
        if not form.is_valid():
            return render(status=400 if form.is_bound else 200)
        if challenge := fresh.required(request):
            return challenge
        tenant = form.cleaned_data["tenant"]
        try:
            made, secret = add_webhook(
                tenant_id=tenant.pk, settings=form.settings(), actor=actor_of(request), now=timezone.now()
            )
        except MemoryHubError as error:
            form.refuse(error)
            return render(status=error.status, to_allow=to_allow(request, form, "url"))
        return self._show_secret(request, made, secret)

    @address("try/", "try")
    def try_entered(self, request: HttpRequest) -> HttpResponse:
        """Send a test to the entered address, and say what came of it beside the form. Nothing is stored.

        Our script shows the answer in the page; without it the page comes again with what was entered.
        """
        require(request, CHANGE)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        form = forms.WebhookForm(request.POST, operator=request.user)
        form.only("url")
        tried = _tried(form) if form.is_valid() else None
        status = HTTPStatus.BAD_REQUEST if form.errors else HTTPStatus.OK
        shown = {
            "tried": tried,
            "why": _came_of(tried.result) if tried else "",
            "to_allow": to_allow(request, form, "url"),
            "is_test": True,
        }
        if request.headers.get("X-Fragment") == FRAGMENT:
            return render_page(
                request, "memories/webhook_tested.html", status=status, form=form, in_place=True, **shown
            )
        return render_page(request, "memories/webhook_add.html", status=status, **self._add_context(form), **shown)

    def _add_context(self, form: forms.WebhookForm) -> dict[str, Any]:
        return {"title": gettext("New webhook"), "opts": self.opts, "form": form}

    def answer(self, request: HttpRequest, form: VerbForm, done: str) -> HttpResponse:
        if isinstance(form, forms.RotateSecretForm):
            return self._show_secret(request, form.record, form.plaintext)
        return super().answer(request, form, done)

    def _show_secret(self, request: HttpRequest, endpoint: WebhookEndpoint, secret: str) -> TemplateResponse:
        """The secret in the response itself, since a redirect would have to store it."""
        context: dict[str, Any] = {"title": gettext("The secret of the webhook"), "opts": self.opts}
        page = render_page(
            request,
            "memories/webhook_secret.html",
            webhook=endpoint,
            plaintext=secret,
            host=host_of(endpoint),
            **context,
        )
        page["Cache-Control"] = "no-store"
        return page


def _tried(form: forms.WebhookForm) -> AddressTest | None:
    """What came of it; None if the form is refused now."""
    try:
        return try_address(form.cleaned_data["url"], now=timezone.now())
    except MemoryHubError as error:
        form.refuse(error)
        return None


def host_of(endpoint: WebhookEndpoint) -> str:
    """The host alone: an address may hold a password in its path."""
    return urlsplit(endpoint.url).hostname or ""


def _came_of(done: WebhookDelivery | DeliveryResult) -> str:
    """Why the last attempt failed, with the status; empty if it did not."""
    if not done.failure:
        return ""
    if done.failure == delivering.REFUSED and done.status:
        return gettext("answered with HTTP %(status)d") % {"status": done.status}
    why = str(FAILURES.get(done.failure, done.failure))
    return f"{why} ({done.status})" if done.status else why
