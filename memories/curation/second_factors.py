"""Taking an operator's second factor away, for those who lost it."""

import uuid
from datetime import datetime

from allauth.mfa.models import Authenticator
from django.db import transaction

from memories import audit
from memories.audit import Actor
from memories.curation.operators import CHANGE_OPERATOR
from memories.curation.powers import check_covers, powers_of, powers_of_actor
from memories.exceptions import Conflict, NotFound
from memories.models import Operator


def remove_second_factor(*, operator_id: uuid.UUID, actor: Actor, now: datetime) -> Operator:
    """Forget the operator's authenticator app and recovery codes: the password is enough until they set up another.

    Errors: NotFound, Conflict when there is none or they may more than the actor, PermissionDenied.
    """
    with transaction.atomic():
        operator = Operator.objects.select_for_update().filter(pk=operator_id).first()
        if operator is None:
            raise NotFound
        check_covers(powers_of_actor(actor, needs=CHANGE_OPERATOR), powers_of(operator))
        if not Authenticator.objects.filter(user=operator).delete()[0]:
            raise Conflict
        audit.record(
            actor=actor, verb="remove_second_factor", target=operator, object_id=operator.pk, tenant=None, now=now
        )
    return operator
