"""Invitations: the link is sent by mail, or shown once; its page sets the password of the invited operator.

The secret of a link follows its #, which browsers send to nobody: it is in no log and no Referer. A script of the page
puts it into the form. Opening the page changes nothing, so programs that look at links in mails use none up.
"""

from datetime import datetime
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.debug import sensitive_post_parameters

from memories.admin.access.operator_forms import AcceptForm, check_twice
from memories.admin.site.page import actor_of, render_page
from memories.curation.access.invitations import accept_invitation, invited, link_of, send, sends_to
from memories.exceptions import MemoryHubError
from memories.models import Operator
from memories.privacy.trail.second_person import barred_until


def urls() -> list[URLPattern]:
    # Not an admin_view: who is invited cannot sign in yet.
    return [path("invitation/", accept, name="invitation")]


def is_late(operator: Operator, *, now: datetime) -> bool:
    """Whether the operator was invited, and the link has expired."""
    return bool(operator.invited_until and operator.invited_until <= now)


def hand_over(request: HttpRequest, operator: Operator, secret: str) -> TemplateResponse:
    """Send the link. Where that is not possible, show it in the response itself: a redirect would have to store it."""
    link = link_of(secret)
    sent = sends_to(operator) and send(operator, link)
    context: dict[str, Any] = {
        "title": _("Invitation"),
        "opts": Operator._meta,
        "operator": operator,
        "link": "" if sent else link,
        "failed": sends_to(operator) and not sent,
        "approves_from": barred_until(str(actor_of(request).id), str(operator.pk), at=timezone.now())
        if operator.has_perm("memories.approve_privacycase")
        else None,
    }
    page = render_page(request, "memories/invitation_made.html", **context)
    page["Cache-Control"] = "no-store"
    return page


@never_cache
@csrf_protect
@sensitive_post_parameters()
def accept(request: HttpRequest) -> HttpResponse:
    """Set the password of the invited operator. Signing in is left to its own page, with its second factor."""
    form = AcceptForm(request.POST if request.method == "POST" else None)
    status = HTTPStatus.OK
    if form.is_bound:
        status = HTTPStatus.BAD_REQUEST
        now, data = timezone.now(), form.cleaned_data if form.is_valid() else {}
        operator = invited(data["secret"], now=now) if data else None
        if data and operator is None:
            return _page(request, form, gone=True, status=HTTPStatus.GONE)
        if operator is not None:
            check_twice(form, data, operator)
        if operator is not None and form.is_valid():
            try:
                operator = accept_invitation(secret=data["secret"], password=data["password"], now=now)
            except MemoryHubError:
                return _page(request, form, gone=True, status=HTTPStatus.GONE)
            return _page(request, form, operator=operator)
    return _page(request, form, status=status)


def _page(
    request: HttpRequest, form: AcceptForm, *, gone: bool = False, operator: Operator | None = None, status: int = 200
) -> TemplateResponse:
    context = {
        "title": _("Choose a password"),
        "form": form,
        "gone": gone,
        "operator": operator,
        "perms_of_operator": operator is not None and operator.has_perm("memories.approve_privacycase"),
    }
    return render_page(request, "memories/invitation.html", status=status, **context)
