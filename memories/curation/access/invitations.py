"""Invitations: a one-time link by which an operator chooses a password. It expires, and can be revoked.

The link has a random secret of 256 bits, of which the database keeps the SHA-256 alone. The row of the operator holds
the invitation, so a second one ends the first.
"""

import hashlib
import logging
import secrets
import uuid
from datetime import datetime

from django.conf import settings
from django.core.mail import send_mail
from django.db import transaction
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from memories import audit
from memories.audit import Actor
from memories.curation.access.operators import CHANGE_OPERATOR, OperatorDraft, add_operator, locked
from memories.curation.access.powers import check_covers, powers_of, powers_of_actor
from memories.exceptions import Conflict
from memories.models import Operator
from memories.models.access.operators import INVITATION_VALID

logger = logging.getLogger(__name__)


def invite(*, operator_id: uuid.UUID, actor: Actor, now: datetime) -> tuple[Operator, str]:
    """Make a link for this operator, and return its secret, which is stored nowhere. A password stays until it is used.

    Errors: NotFound; Conflict when the operator can do more than the actor, or cannot sign in; PermissionDenied.
    """
    secret = secrets.token_urlsafe(32)
    with transaction.atomic():
        operator = locked(operator_id)
        check_covers(powers_of_actor(actor, needs=CHANGE_OPERATOR), powers_of(operator))
        if not operator.is_active:
            raise Conflict(_("This operator cannot sign in. Turn “Can sign in” on first."))
        _write(operator, _digest(secret), now + INVITATION_VALID)
        audit.record(verb="invite", target=operator, actor=actor, now=now)
    return operator, secret


def add_invited_operator(*, draft: OperatorDraft, actor: Actor, now: datetime) -> tuple[Operator, str]:
    """Make an operator and a link for them. Errors: as add_operator() and invite()."""
    with transaction.atomic():
        operator = add_operator(draft=draft, password=None, actor=actor, now=now)
        return invite(operator_id=operator.pk, actor=actor, now=now)


def invite_by_mail(*, operator_id: uuid.UUID, actor: Actor, now: datetime) -> Operator:
    """Make a link and send it to the operator; nobody else sees it. Errors: as invite(); Conflict without mail."""
    operator = Operator.objects.filter(pk=operator_id).first()
    if operator and not sends_to(operator):
        raise Conflict(_("The hub sends no mail, or the operator has no address. Make the link in the admin."))
    operator, secret = invite(operator_id=operator_id, actor=actor, now=now)
    if not send(operator, link_of(secret)):
        raise Conflict(_("The mail could not be sent. Try again."))
    return operator


def sends_to(operator: Operator) -> bool:
    """Whether the link goes to the operator by mail."""
    return bool(settings.MEMORYHUB_SENDS_MAIL and operator.email)


def link_of(secret: str) -> str:
    """The secret follows the #, which browsers send to nobody."""
    return f"{settings.PUBLIC_URL}{reverse('admin:invitation')}#{secret}"


def send(operator: Operator, link: str) -> bool:
    """Send the link; False if that failed."""
    # Translators: Django's date format of a moment with its zone.
    form = pgettext("date format", "j M Y, H:i:s T")
    until = date_format(timezone.localtime(operator.invited_until), form) if operator.invited_until else ""
    about = {"hub": settings.PUBLIC_URL, "name": operator.username, "link": link, "until": until}
    text = _(
        "You are invited to Memory Hub at %(hub)s.\n\n"
        "Your username is %(name)s. Open this link and choose a password:\n\n%(link)s\n\n"
        "The link works once, until %(until)s. If you did not expect it, do nothing."
    )
    try:
        send_mail(_("Your invitation to Memory Hub"), text % about, None, [operator.email])
    except OSError as error:
        # Not the message: servers repeat the address in it.
        logger.warning("An invitation could not be sent: %s", type(error).__name__)
        return False
    return True


def revoke_invitation(*, operator_id: uuid.UUID, actor: Actor, now: datetime) -> Operator:
    """End the link. Whoever has it can set no password by it. Errors: as invite()."""
    with transaction.atomic():
        operator = locked(operator_id)
        check_covers(powers_of_actor(actor, needs=CHANGE_OPERATOR), powers_of(operator))
        if operator.invitation is None:
            raise Conflict(_("There is no open invitation: it was used or revoked."))
        _write(operator, None, None)
        audit.record(verb="revoke_invitation", target=operator, actor=actor, now=now)
    return operator


def invited(secret: str, *, now: datetime) -> Operator | None:
    """Who may set a password with this secret; None if it is unknown, used, revoked or expired."""
    return Operator.objects.filter(**_open(secret, now=now)).first()


def accept_invitation(*, secret: str, password: str, now: datetime) -> Operator:
    """Set the password of the invited operator. The link is used up.

    Errors: Conflict if the link does not work any more, so also for the second of two at once.
    """
    with transaction.atomic():
        # Who waits here for another reads the row again, and finds no invitation in it.
        operator = Operator.objects.select_for_update(of=("self",)).filter(**_open(secret, now=now)).first()
        if operator is None:
            raise Conflict(_("This link does not work any more."))
        operator.set_password(password)
        operator.save(update_fields=["password"])
        _write(operator, None, None)
        audit.record(verb="accept_invitation", target=operator, actor=Actor.operator(operator), now=now)
    return operator


def _open(secret: str, *, now: datetime) -> dict[str, object]:
    return {"invitation": _digest(secret), "invited_until__gt": now, "is_active": True, "is_staff": True}


def _digest(secret: str) -> bytes:
    # Nobody can try all secrets of 256 random bits: it needs neither a salt nor a slow hash.
    return hashlib.sha256(secret.encode()).digest()


def _write(operator: Operator, digest: bytes | None, until: datetime | None) -> None:
    operator.invitation, operator.invited_until = digest, until
    operator.save(update_fields=["invitation", "invited_until"])
