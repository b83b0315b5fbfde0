"""Links accounts of the identity provider to operators: made at the first sign-in, removed by an administrator."""

import uuid
from datetime import datetime

from allauth.socialaccount.models import SocialAccount
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.models import Session
from django.db import transaction
from django.utils.translation import gettext as _

from memories import audit
from memories.audit import Actor
from memories.curation.access.operators import CHANGE_OPERATOR
from memories.curation.access.powers import check_covers, powers_of, powers_of_actor
from memories.exceptions import Conflict, NotFound
from memories.models import Operator


def link_provider(*, operator_id: uuid.UUID, account: SocialAccount, now: datetime) -> Operator:
    """Let this account of the provider sign in as the operator from now on, whatever its address becomes.

    Errors: NotFound; Conflict when another account is linked: a mail address can pass from one person to another, so
    only an administrator replaces an account, by unlinking it.
    """
    with transaction.atomic():
        operator = _locked(operator_id)
        linked = SocialAccount.objects.filter(user=operator).first()
        if linked is None:
            account.user = operator
            account.save()
            audit.record(verb="link_provider", target=operator, actor=Actor.operator(operator), now=now)
        elif (linked.provider, linked.uid) != (account.provider, account.uid):
            raise Conflict(
                _(
                    "Another account of the identity provider is linked to this operator. "
                    "Ask an administrator to unlink it."
                )
            )
    return operator


def unlink_provider(*, operator_id: uuid.UUID, actor: Actor, now: datetime) -> Operator:
    """Unlink the operator's account at the provider and end their sessions; the next account that signs in is linked.

    Errors: NotFound, Conflict when there is none or they have more powers than the actor, PermissionDenied.
    """
    with transaction.atomic():
        operator = _locked(operator_id)
        check_covers(powers_of_actor(actor, needs=CHANGE_OPERATOR), powers_of(operator))
        if not SocialAccount.objects.filter(user=operator).delete()[0]:
            raise Conflict(_("No account of the identity provider is linked."))
        # Whoever signed in with the account is signed out at once; staff have few sessions.
        theirs = [
            session.pk
            for session in Session.objects.filter(expire_date__gt=now).iterator()
            if session.get_decoded().get(SESSION_KEY) == str(operator.pk)
        ]
        Session.objects.filter(pk__in=theirs).delete()
        audit.record(verb="unlink_provider", target=operator, actor=actor, now=now)
    return operator


def _locked(operator_id: uuid.UUID) -> Operator:
    operator = Operator.objects.select_for_update().filter(pk=operator_id).first()
    if operator is None:
        raise NotFound
    return operator
