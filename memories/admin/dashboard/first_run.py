"""First steps: what a new hub lacks until turns arrive, a model reads them, and two operators can sign in."""

import json
import shlex
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from memories import conf
from memories.admin.access.tenant_scope import tenants_of, within
from memories.admin.site import sidebar
from memories.models import APIKey, Operator, Tenant, Turn

# Who can take all of the steps.
PERMISSIONS = ("memories.add_tenant", "memories.add_apikey", "memories.add_operator")
EXAMPLE = {"user_id": "u1", "session_id": "s1", "messages": [{"role": "user", "content": "Hello"}]}


@dataclass(frozen=True)
class Step:
    title: str | Promise
    text: str | Promise
    done: bool
    link: str
    act: str | Promise


def checklist(request: HttpRequest) -> dict[str, Any]:
    """The context of the checklist: `steps`, empty once all are done or for who cannot take them. At most two queries.

    `is_open`: nothing was stored yet; after that the list is folded.
    """
    operator = request.user
    if not isinstance(operator, Operator) or not operator.has_perms(PERMISSIONS):
        return {"steps": []}
    counts = sidebar.counts_of(request)
    is_done = _found(operator)
    has_model = conf.llm().mode not in (conf.LLM_RULES, conf.LLM_OFF) or counts.own_endpoints > 0
    only_tenant = tenants_of(operator).first() if counts.tenants == 1 else None
    steps = _steps(is_done, tenants=counts.tenants, has_model=has_model, tenant=only_tenant)
    if all(step.done for step in steps):
        return {"steps": []}
    left = sum(not step.done for step in steps)
    return {"steps": steps, "left": left, "is_open": not is_done["turn"], "curl": curl("mh_…")}


def curl(key: str) -> str:
    """A line for a shell that stores a turn with this key."""
    headers = [f"Authorization: Bearer {key}", "Content-Type: application/json"]
    given = [part for header in headers for part in ("-H", header)]
    return shlex.join(["curl", f"{settings.PUBLIC_URL}/api/v1/turns", *given, "-d", json.dumps(EXAMPLE)])


def _found(operator: Operator) -> dict[str, bool]:
    rows: dict[str, QuerySet[Any]] = {
        "key": within(operator, APIKey.objects.filter(revoked_at=None)),
        "turn": within(operator, Turn.objects.all()),
        # Not who is invited only: they cannot sign in yet.
        "second": Operator.objects.filter(is_active=True, is_staff=True, invitation=None).exclude(pk=OuterRef("pk")),
    }
    exist = [Exists(each.order_by()) for each in rows.values()]
    row = Operator.objects.filter(pk=operator.pk).values_list(*exist).get()
    return dict(zip(rows, map(bool, row), strict=True))


def _steps(found: dict[str, bool], *, tenants: int, has_model: bool, tenant: Tenant | None) -> list[Step]:
    tenants_list = reverse("admin:memories_tenant_changelist")
    model = reverse("admin:memories_tenant_model", args=[tenant.pk]) if tenant else tenants_list
    return [
        Step(
            _("Create a tenant"),
            _("One for each application: nothing is shared between tenants."),
            tenants > 0,
            reverse("admin:memories_tenant_add") + "?then=key",
            _("Create a tenant"),
        ),
        Step(
            _("Create an API key"),
            _("The application sends it with every request. It is shown once, with a line to try it."),
            found["key"],
            reverse("admin:memories_apikey_add"),
            _("Create key"),
        ),
        Step(
            _("Store the first turn"),
            _("Run this line with your key. This page notices by itself when it arrives."),
            found["turn"],
            "",
            "",
        ),
        Step(
            _("Choose a model"),
            _(
                "Without one, simple rules make facts of requests to remember, wishes and plain statements. Test the "
                "endpoint on the same page."
            ),
            has_model,
            model,
            _("Model and endpoint"),
        ),
        Step(
            _("Invite a second operator"),
            _(
                "So that nobody is locked out, and an erasure has somebody to approve it. They choose a password "
                "first. What you open they can approve only 24 hours after you created the account or set its "
                "password, and 24 hours after the last day of your invitation: invite them early."
            ),
            found["second"],
            reverse("admin:memories_operator_add"),
            _("Invite an operator"),
        ),
    ]
