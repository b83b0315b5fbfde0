"""Off-boarding a tenant: a page of its own says what it means before anything happens, and leads back again."""

import uuid
from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories import curation
from memories.admin import fresh
from memories.admin.fields import LineField
from memories.admin.naming import called
from memories.admin.page import Page, VerbForm, actor_of, url_of
from memories.audit import Actor
from memories.exceptions import MemoryHubError
from memories.models import Tenant


class OffBoardForm(VerbForm):
    slug = LineField(
        label=gettext_lazy("The tenant's slug"),
        max_length=63,
        help_text=gettext_lazy("Typed out, so that it is no slip."),
    )
    # How many keys the operator read that it revokes.
    keys = forms.IntegerField(widget=forms.HiddenInput)

    def clean_slug(self) -> str:
        slug: str = self.cleaned_data["slug"]
        if slug != self.record.slug:
            raise forms.ValidationError(_("This is not the slug of this tenant."), code="slug")
        return slug

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        expected = self.cleaned_data["keys"]
        curation.off_board_tenant(tenant_id=self.record.pk, expected_keys=expected, actor=actor, now=now)
        return _("The tenant is off-boarded: its keys are refused, and nothing is stored or told any more.")


class TakeBackForm(VerbForm):
    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        curation.take_back_tenant(tenant_id=self.record.pk, actor=actor, now=now)
        return _("The tenant is back: its keys work again, and its switches are as they were.")


class OffBoardingPage(Page):
    """The page of tenants with both acts, for those who may change tenants."""

    acts: ClassVar[dict[str, type[VerbForm]]] = {"off_board": OffBoardForm, "take_back": TakeBackForm}

    def get_urls(self) -> list[URLPattern]:
        return [*(self._act_url(act) for act in self.acts), *super().get_urls()]

    def _act_url(self, act: str) -> URLPattern:
        def view(request: HttpRequest, object_id: uuid.UUID) -> HttpResponse:
            return self.act(request, object_id, act)

        name = f"{self.opts.app_label}_{self.opts.model_name}_{act}"
        pattern: URLPattern = path(f"<uuid:object_id>/{act}/", self.admin_site.admin_view(view), name=name)
        return pattern

    def act(self, request: HttpRequest, object_id: uuid.UUID, act: str) -> HttpResponse:
        """The page that asks; posted, the act itself: 400 for bad input, the error's own status when it is refused."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        tenant = self.get_object(request, str(object_id))
        if tenant is None:
            raise Http404
        if request.method != "POST":
            return self.ask(request, tenant)
        if asked := fresh.required(request):
            return asked
        form, status = self.acts[act](request.POST, record=tenant), 400
        if form.is_valid():
            try:
                messages.success(request, form.carry_out(actor=actor_of(request), now=timezone.now()))
                return HttpResponseRedirect(url_of(tenant))
            except MemoryHubError as error:
                form.refuse(error)
                status = error.status
        return self.ask(request, self.get_object(request, str(object_id)), tried=form, status=status)

    def ask(
        self, request: HttpRequest, tenant: Tenant, *, tried: VerbForm | None = None, status: int = 200
    ) -> TemplateResponse:
        """What it means as it is now; `tried` is a form that was refused, shown with what was typed."""
        preview = curation.preview_off_boarding(tenant, now=timezone.now())
        form = tried if isinstance(tried, OffBoardForm) else OffBoardForm(record=tenant)
        context: dict[str, Any] = {
            **self.admin_site.each_context(request),
            "title": called(tenant),
            "opts": self.opts,
            "original": tenant,
            "tenant": tenant,
            "preview": preview,
            "form": form,
            "tried": tried,
        }
        return TemplateResponse(request, "memories/tenant_off_board.html", context, status=status)
