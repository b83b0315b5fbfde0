"""The banner that there is no language model: a line on every page, which leads to where one is chosen, and which an
operator can hide until they sign in again."""

from typing import NamedTuple

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.http import url_has_allowed_host_and_scheme

from memories import conf
from memories.admin.access.tenant_scope import tenants_of
from memories.admin.site import sidebar

# In the session.
HIDDEN = "model_banner_hidden"


class ModelIsOff(NamedTuple):
    """What the banner says: whether only some tenants lack a model, and whether rules make facts for them."""

    only_some: bool
    suggests: bool


def urls() -> list[URLPattern]:
    return [path("model-banner/", admin.site.admin_view(model_banner), name="model_banner")]


def shown_to(request: HttpRequest) -> ModelIsOff | None:
    """None also for who has hidden it."""
    hidden = getattr(request, "session", {}).get(HIDDEN)
    return None if hidden else model_is_off(conf.llm().mode, sidebar.counts_of(request))


def model_is_off(mode: str, counts: sidebar.FrameCounts) -> ModelIsOff | None:
    """None where every tenant that the operator may see has a model. A hub that is off asks no tenant's, either."""
    if mode == conf.LLM_OFF:
        return ModelIsOff(only_some=False, suggests=False)
    if mode != conf.LLM_RULES or 0 < counts.tenants == counts.own_endpoints:
        return None
    return ModelIsOff(only_some=counts.own_endpoints > 0, suggests=True)


def model_banner(request: HttpRequest) -> HttpResponse:
    """Where it leads: to the model of the only tenant, else to the tenants. A POST hides it, and leads back."""
    if request.method == "POST":
        request.session[HIDDEN] = True
        to = request.POST.get("to", "")
        is_ours = url_has_allowed_host_and_scheme(to, {request.get_host()}, require_https=request.is_secure())
        return HttpResponseRedirect(to if is_ours else reverse("admin:index"))
    tenants = list(tenants_of(request.user)[:2])
    if len(tenants) == 1 and request.user.has_perm("memories.change_languagemodel"):
        return HttpResponseRedirect(reverse("admin:memories_tenant_model", args=[tenants[0].pk]))
    return HttpResponseRedirect(reverse("admin:memories_tenant_changelist"))
