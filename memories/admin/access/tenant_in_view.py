"""The tenant in view: an operator narrows all lists, tiles and the queue to one tenant, for this session.

It shows less and permits nothing: what the operator may see is asked first, each time. Every page says so while it
holds. A record of another tenant that is opened by its address is shown as ever.
"""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget

from memories.admin.access.tenant_scope import tenants_of
from memories.admin.site.page import render_page
from memories.models import Operator
from memories.models.ids import parse_uuid

CHOSEN = "tenant_in_view"


class TenantInViewForm(forms.Form):
    tenant: Any = forms.ModelChoiceField(
        label=gettext_lazy("Tenant"),
        queryset=None,
        required=False,
        empty_label=gettext_lazy("All tenants"),
        widget=UnfoldAdminSelectWidget,
    )


def urls() -> list[URLPattern]:
    return [path("tenant-in-view/", admin.site.admin_view(tenant_in_view), name="tenant_in_view")]


def apply(request: HttpRequest) -> None:
    """Narrow this request to the tenant that the session names, if the operator may still see it."""
    operator, chosen = request.user, parse_uuid(request.session.get(CHOSEN, ""))
    if not isinstance(operator, Operator) or chosen is None:
        return
    operator.tenant_in_view = tenants_of(operator).filter(pk=chosen).first()
    if operator.tenant_in_view is None:
        del request.session[CHOSEN]


def tenant_in_view(request: HttpRequest) -> HttpResponse:
    """Choose it, or all; the choice is kept in the session, and leads to the first page."""
    operator = request.user
    if not isinstance(operator, Operator):
        raise PermissionDenied
    form = TenantInViewForm(
        request.POST if request.method == "POST" else None, initial={"tenant": operator.tenant_in_view}
    )
    form.fields["tenant"].queryset = tenants_of(operator)  # type: ignore[attr-defined]
    if not form.is_valid():
        status = 400 if form.is_bound else 200
        return render_page(request, "memories/tenant_in_view.html", title=_("Tenant in view"), form=form, status=status)
    tenant = form.cleaned_data["tenant"]
    if tenant:
        request.session[CHOSEN] = str(tenant.pk)
    else:
        request.session.pop(CHOSEN, None)
        messages.success(request, _("Lists show all tenants again."))
    return HttpResponseRedirect(reverse("admin:index"))
