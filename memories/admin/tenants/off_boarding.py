"""Off-boarding a tenant and taking it back. A page shows the consequences before anything happens."""

import uuid
from http import HTTPStatus
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories.admin.access import fresh
from memories.admin.site.fields import LineField
from memories.admin.site.naming import called
from memories.admin.site.page import HubModelAdmin, VerbForm, address, attempt, render_page, url_of
from memories.curation.tenants.off_boarding import off_board_tenant, preview_off_boarding, take_back_tenant
from memories.models import Tenant


class OffBoardForm(VerbForm):
    calls = staticmethod(off_board_tenant)
    done = gettext_lazy("The tenant is off-boarded. Its keys no longer work, and nothing is stored or served.")
    slug = LineField(
        label=gettext_lazy("The tenant's slug"),
        max_length=63,
        help_text=gettext_lazy("Type it to confirm."),
    )
    # The number of revoked keys that the operator saw.
    keys = forms.IntegerField(widget=forms.HiddenInput)

    def clean_slug(self) -> str:
        slug: str = self.cleaned_data["slug"]
        if slug != self.record.slug:
            raise forms.ValidationError(_("This is not the slug of this tenant."), code="slug")
        return slug

    def arguments(self) -> dict[str, Any]:
        return {"tenant_id": self.record.pk, "expected_keys": self.cleaned_data["keys"]}


class TakeBackForm(VerbForm):
    calls = staticmethod(take_back_tenant)
    done = gettext_lazy("The tenant is restored. Its keys work again, and its switches are as before.")

    def arguments(self) -> dict[str, Any]:
        return {"tenant_id": self.record.pk}


class OffBoardingPage(HubModelAdmin):
    """The two acts of the tenants' page, for operators who may change tenants."""

    @address("<uuid:object_id>/off_board/")
    def off_board(self, request: HttpRequest, object_id: uuid.UUID) -> HttpResponse:
        return self.act(request, object_id, OffBoardForm)

    @address("<uuid:object_id>/take_back/")
    def take_back(self, request: HttpRequest, object_id: uuid.UUID) -> HttpResponse:
        return self.act(request, object_id, TakeBackForm)

    def act(self, request: HttpRequest, object_id: uuid.UUID, verb: type[VerbForm]) -> HttpResponse:
        """Show the consequences. A POST runs the act: 400 for invalid input, the error's status if it fails."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        tenant = self.get_object(request, str(object_id))
        if tenant is None:
            raise Http404
        if request.method != "POST":
            return self.ask(request, tenant)
        if challenge := fresh.required(request):
            return challenge
        form = verb(request.POST, record=tenant)
        done, status = attempt(request, form)
        if status == HTTPStatus.OK:
            messages.success(request, done)
            return HttpResponseRedirect(url_of(tenant))
        return self.ask(request, self.get_object(request, str(object_id)), tried=form, status=status)

    def ask(
        self, request: HttpRequest, tenant: Tenant, *, tried: VerbForm | None = None, status: int = 200
    ) -> TemplateResponse:
        """The consequences as of now. `tried` is a rejected form, shown again with its input."""
        return render_page(
            request,
            "memories/tenant_off_board.html",
            status=status,
            title=called(tenant),
            opts=self.opts,
            original=tenant,
            tenant=tenant,
            preview=preview_off_boarding(tenant, now=timezone.now()),
            form=tried if isinstance(tried, OffBoardForm) else OffBoardForm(record=tenant),
            tried=tried,
        )
