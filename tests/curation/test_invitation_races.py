"""A link that two use at once, or that is revoked or replaced meanwhile: on connections of their own."""

from collections.abc import Callable

import pytest

from memories.curation.access.invitations import accept_invitation, invite, revoke_invitation
from memories.exceptions import Conflict
from memories.models import AuditEvent, Operator
from tests import factories
from tests.database import PATIENCE, at_once, blocked, held
from tests.factories import COMMAND, NOW

pytestmark = pytest.mark.django_db(transaction=True)


def accept(secret: str, password: str = "chosen by the invited") -> Operator:
    return accept_invitation(secret=secret, password=password, now=NOW)


@pytest.fixture
def secret(db: None) -> str:
    return invite(operator_id=factories.operator(username="lin").pk, actor=COMMAND, now=NOW)[1]


def test_of_two_at_once_one_sets_the_password(secret: str) -> None:
    outcomes = at_once(2, lambda number: accept(secret, f"the password {number}"))
    [won] = [outcome for outcome in outcomes if isinstance(outcome, Operator)]
    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 1
    assert Operator.objects.get(username="lin").password == won.password
    assert AuditEvent.objects.filter(verb="accept_invitation").count() == 1


def test_who_waits_for_another_use_of_the_link_finds_it_used(secret: str) -> None:
    with held(lambda: accept(secret)):
        second = blocked(lambda: accept(secret, "too late for this one"))
    with pytest.raises(Conflict):
        second.result(PATIENCE)
    assert Operator.objects.get(username="lin").check_password("chosen by the invited")


@pytest.mark.parametrize("ends", [revoke_invitation, invite])
def test_one_that_ends_meanwhile_sets_nothing(secret: str, ends: Callable[..., object]) -> None:
    lin = Operator.objects.get(username="lin")
    with held(lambda: ends(operator_id=lin.pk, actor=COMMAND, now=NOW)):
        late = blocked(lambda: accept(secret))
    with pytest.raises(Conflict):
        late.result(PATIENCE)
    assert not Operator.objects.get(username="lin").check_password("chosen by the invited")
