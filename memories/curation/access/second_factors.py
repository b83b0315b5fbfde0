"""Operators' second factors: use a code, re-encrypt the secrets, remove a factor that somebody lost."""

import uuid
from datetime import datetime
from typing import Any

from allauth.core.internal.cryptokit import compare_user_code
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal import auth as totp
from django.conf import settings
from django.db import transaction

from memories import audit
from memories.audit import Actor
from memories.conf import second_factor_keys as keys
from memories.curation.access.operators import CHANGE_OPERATOR
from memories.curation.access.powers import check_covers, powers_of, powers_of_actor
from memories.exceptions import Conflict, NotFound
from memories.models import Operator

# Seconds per code, the default of RFC 6238, which apps expect.
PERIOD = 30
# In allauth's row: the counter of the code that was used last.
USED = "used_counter"
_ENCRYPTED = ("secret", "seed")


def use_second_factor(*, operator_id: uuid.UUID, code: str, now: datetime) -> Authenticator | None:
    """Use a code of the operator's app, or a recovery code; None when it fits none, or was used before.

    The rows are locked, so of two processes that get the same code one accepts it. A secret that cannot be decrypted
    fits no code. Errors: Unreadable when there is such a secret and the code fits nothing else.
    """
    unreadable = None
    with transaction.atomic():
        for factor in Authenticator.objects.select_for_update().filter(user=operator_id).order_by("pk"):
            try:
                taken = _take(factor, code, now)
            except keys.Unreadable as error:
                unreadable = error
                continue
            if taken:
                _renew(factor)
                return factor
    if unreadable:
        raise unreadable
    return None


def has_second_factor(operator: Operator) -> bool:
    """Whether the operator has set one up; from what was prefetched, if it was."""
    row: Any = operator
    return bool(row.authenticator_set.all())


def reencrypt_second_factors() -> tuple[int, int]:
    """Encrypt all secrets with the present key; returns how many had another one, and how many no key decrypts.

    A second run changes nothing; after a crash, a run continues with what is left.
    """
    renewed = unreadable = 0
    for pk in Authenticator.objects.order_by("pk").values_list("pk", flat=True):
        with transaction.atomic():
            factor = Authenticator.objects.select_for_update().filter(pk=pk).first()
            try:
                renewed += _renew(factor) if factor else 0
            except keys.Unreadable:
                unreadable += 1
    return renewed, unreadable


def remove_second_factor(*, operator_id: uuid.UUID, actor: Actor, now: datetime) -> Operator:
    """Delete the operator's authenticator app and recovery codes: the password is enough until they set up another.

    Errors: NotFound, Conflict when there is none or they have more powers than the actor, PermissionDenied.
    """
    with transaction.atomic():
        operator = Operator.objects.select_for_update().filter(pk=operator_id).first()
        if operator is None:
            raise NotFound
        check_covers(powers_of_actor(actor, needs=CHANGE_OPERATOR), powers_of(operator))
        if not Authenticator.objects.filter(user=operator).delete()[0]:
            raise Conflict
        audit.record(actor=actor, verb="remove_second_factor", target=operator, now=now)
    return operator


def _take(factor: Authenticator, code: str, now: datetime) -> bool:
    """Whether the code is right; then it is used up. Errors: Unreadable."""
    if factor.type == Authenticator.Type.RECOVERY_CODES:
        # allauth records used codes in the row, which we have locked.
        return bool(factor.wrap().validate_code(code))
    if factor.type != Authenticator.Type.TOTP:
        return False
    secret = keys.decrypt(factor.data["secret"])
    present, off = int(now.timestamp()) // PERIOD, settings.MFA_TOTP_TOLERANCE
    # As RFC 6238 asks: each code at most once, and none older than the last one used.
    first = max(present - off, factor.data.get(USED, 0) + 1)
    for counter in range(first, present + off + 1):
        if compare_user_code(actual=code, expected=totp.format_hotp_value(totp.hotp_value(secret, counter))):
            factor.data[USED] = counter
            factor.save(update_fields=["data"])
            return True
    return False


def _renew(factor: Authenticator) -> bool:
    """Encrypt the row's secrets with the present key; whether they had another one. Errors: Unreadable."""
    # allauth recorded a used recovery code in a copy of the row.
    factor.refresh_from_db(fields=["data"])
    old = {name: factor.data[name] for name in _ENCRYPTED if name in factor.data}
    if all(keys.is_present(token) for token in old.values()):
        return False
    factor.data |= {name: keys.encrypt(keys.decrypt(token)) for name, token in old.items()}
    factor.save(update_fields=["data"])
    return True
