"""A tenant's own language model: the form for it, what its day used, and tenants that wait at a daily cap."""

import uuid
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminDecimalFieldWidget, UnfoldAdminIntegerFieldWidget, UnfoldAdminPasswordWidget

from memories import conf
from memories.admin.access import fresh
from memories.admin.access.operator_forms import SwitchField
from memories.admin.access.tenant_scope import tenants_of
from memories.admin.site.fields import LineField
from memories.admin.site.naming import called
from memories.admin.site.page import VerbForm, attempt, render_page, require, url_of
from memories.admin.site.private_addresses import to_allow
from memories.audit import Actor
from memories.curation.tenants.language_models import (
    LONGEST_KEY,
    LONGEST_MODEL,
    MOST_COST,
    MOST_PRICE,
    MOST_TOKENS,
    ModelSettings,
    save_language_model,
    try_language_model,
)
from memories.exceptions import InvalidInput, MemoryHubError, ModelUntested
from memories.llm.addresses import LONGEST_ADDRESS
from memories.models import Tenant
from memories.queue import own_models, spending
from memories.queue.spending import Day

CHANGE = "memories.change_languagemodel"
_NAMES = ("model", "base_url", "prompt_price", "completion_price", "daily_tokens", "daily_cost", "sees_pictures")
_HOST_OF_OPENAI = "api.openai.com"
# Value of the header of our script, which shows what a test came to.
FRAGMENT = "tested"


class PriceField(forms.DecimalField):
    def __init__(self, *, most: int, decimals: int, least: Decimal, **kwargs: Any) -> None:
        widget = UnfoldAdminDecimalFieldWidget(attrs={"step": "any"})
        super().__init__(
            required=False,
            min_value=least,
            max_value=most,
            max_digits=11,
            decimal_places=decimals,
            widget=widget,
            **kwargs,
        )


class LanguageModelForm(VerbForm):
    needs_fresh_password = True
    model = LineField(
        label=gettext_lazy("Model"),
        required=False,
        max_length=LONGEST_MODEL,
        help_text=gettext_lazy("The model's name at the endpoint. Empty: the hub's model."),
    )
    base_url = LineField(
        label=gettext_lazy("Endpoint address"),
        required=False,
        max_length=LONGEST_ADDRESS,
        help_text=gettext_lazy(
            "Such as https://api.openai.com/v1. Empty: the hub's endpoint. Enter the key again when you change the "
            "address."
        ),
    )
    api_key = forms.CharField(
        label=gettext_lazy("API key of the endpoint"),
        required=False,
        max_length=LONGEST_KEY,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "off"}),
        help_text=gettext_lazy("Stored encrypted and never shown. Leave empty to keep the stored key."),
    )
    remove_key = SwitchField(
        label=gettext_lazy("Remove the stored key"), help_text=gettext_lazy("For an endpoint that needs none.")
    )
    prompt_price = PriceField(
        label=gettext_lazy("Price per million input tokens, in dollars"), most=MOST_PRICE, decimals=6, least=Decimal(0)
    )
    completion_price = PriceField(
        label=gettext_lazy("Price per million output tokens, in dollars"),
        most=MOST_PRICE,
        decimals=6,
        least=Decimal(0),
        help_text=gettext_lazy("Without prices, the cost of the tenant's own model is unknown."),
    )
    daily_tokens = forms.IntegerField(
        label=gettext_lazy("Daily cap: tokens"),
        required=False,
        min_value=1,
        max_value=MOST_TOKENS,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text=gettext_lazy(
            "Input and output together, per day in the tenant's time zone. At the cap, extraction waits until the next "
            "day."
        ),
    )
    daily_cost = PriceField(label=gettext_lazy("Daily cap: dollars"), most=MOST_COST, decimals=2, least=Decimal("0.01"))
    sees_pictures = SwitchField(
        label=gettext_lazy("It sees pictures"),
        help_text=gettext_lazy(
            "Pictures that come with turns are sent to the model in force, which describes them. Off: they are refused."
        ),
    )
    version = forms.IntegerField(widget=forms.HiddenInput)

    def settings(self) -> ModelSettings:
        """What was entered."""
        given = self.cleaned_data
        key = given["api_key"] or ("" if given["remove_key"] else None)
        return ModelSettings(api_key=key, **{name: given[name] for name in _NAMES})

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        save_language_model(
            tenant_id=self.record.pk,
            settings=self.settings(),
            expected_version=self.cleaned_data["version"],
            actor=actor,
            now=now,
        )
        return _("The language model of the tenant is saved. It holds for the next calls.")

    def refuse(self, error: MemoryHubError) -> None:
        if isinstance(error, InvalidInput):
            for fault in error.faults:
                self.add_error(fault.pointer, forms.ValidationError(fault.detail, code=fault.code))
        else:
            super().refuse(error)


@dataclass(frozen=True)
class InForce:
    """The model that a tenant's calls ask now, for its page."""

    mode: str
    model: str
    host: str
    is_own: bool
    has_key: bool
    key_is_unreadable: bool
    day: Day


def in_force(tenant: Tenant, *, now: datetime) -> InForce:
    own = own_models.own_of(tenant.pk)
    config = conf.llm(own)
    return InForce(
        mode=config.mode,
        model=config.model,
        host=urlsplit(config.base_url).hostname or _HOST_OF_OPENAI,
        is_own=config.tenant_id is not None,
        has_key=bool(own and own.api_key),
        key_is_unreadable=bool(own and conf.decrypted_model_key(own.api_key) is None),
        day=spending.day_of(tenant, own, now=now),
    )


def urls() -> list[URLPattern]:
    view = admin.site.admin_view(language_model)
    test = admin.site.admin_view(try_model)
    return [
        path("memories/tenant/<uuid:object_id>/model/", view, name="memories_tenant_model"),
        path("memories/tenant/<uuid:object_id>/model/test/", test, name="memories_tenant_model_test"),
    ]


class Tried(NamedTuple):
    """What a test of the endpoint came to, in words."""

    answered: bool
    text: str


def try_model(request: HttpRequest, object_id: uuid.UUID) -> HttpResponse:
    """Ask the entered model for one word, without anybody's data, and say what came of it beside the form.

    Nothing is stored. Our script shows the answer in the page; without it the page comes again, with what was entered
    but for the key.
    """
    require(request, "memories.view_tenant", CHANGE)
    tenant = get_object_or_404(tenants_of(request.user), pk=object_id)
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    form = LanguageModelForm(request.POST, record=tenant)
    # Which version was seen matters to saving alone.
    form.fields["version"].required = False
    tested = _tested(form) if form.is_valid() else None
    status = HTTPStatus.BAD_REQUEST if form.errors else HTTPStatus.OK
    if request.headers.get("X-Fragment") == FRAGMENT:
        context = {"form": form, "tested": tested, "to_allow": to_allow(request, form, "base_url"), "in_place": True}
        return render_page(request, "memories/tenant_model_tested.html", status=status, **context)
    return _page(request, tenant, form, status=status, tested=tested, is_test=True)


def _tested(form: LanguageModelForm) -> Tried | None:
    """What came of it; None if the form is refused now."""
    try:
        found = try_language_model(tenant_id=form.record.pk, settings=form.settings())
    except ModelUntested as error:
        return Tried(False, error.detail)
    except InvalidInput as error:
        form.refuse(error)
        return None
    return Tried(True, _("%(model)s answered in %(ms)d ms.") % {"model": found.model, "ms": found.milliseconds})


def language_model(request: HttpRequest, object_id: uuid.UUID) -> HttpResponse:
    """The form. A POST saves it: 400 for invalid input, 412 if somebody else saved it first."""
    require(request, "memories.view_tenant", CHANGE)
    tenant = get_object_or_404(tenants_of(request.user), pk=object_id)
    if request.method != "POST":
        return _page(request, tenant, LanguageModelForm(record=tenant))
    if challenge := fresh.required(request):
        return challenge
    form = LanguageModelForm(request.POST, record=tenant)
    done, status = attempt(request, form)
    if status == HTTPStatus.OK:
        messages.success(request, done)
        return HttpResponseRedirect(url_of(tenant))
    return _page(request, tenant, form, status=status)


def _page(
    request: HttpRequest,
    tenant: Tenant,
    form: LanguageModelForm,
    *,
    status: int = 200,
    tested: Tried | None = None,
    is_test: bool = False,
) -> HttpResponse:
    own = own_models.own_of(tenant.pk)
    version = own.version if own else 0
    if form.is_bound:
        # What the operator sees now is what the next attempt changes.
        form.data = {**form.data.dict(), "version": version}  # type: ignore[attr-defined]  # a QueryDict
    else:
        form.initial = {"version": version} | ({name: getattr(own, name) for name in _NAMES} if own else {})
    shown = in_force(tenant, now=timezone.now())
    if not shown.has_key:
        del form.fields["remove_key"]
    return render_page(
        request,
        "memories/tenant_model.html",
        status=status,
        title=_("Language model of %(tenant)s") % {"tenant": called(tenant)},
        tenant=tenant,
        opts=Tenant._meta,
        original=tenant,
        here=_("Language model"),
        form=form,
        in_force=shown,
        tested=tested,
        is_test=is_test,
        to_allow=to_allow(request, form, "base_url"),
    )
