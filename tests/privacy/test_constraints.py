"""What the database itself holds of the rules of cases: raw updates, each beside one that it takes."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from memories.models import CaseState, EndUser, PrivacyCase, Tombstone
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db
CHECKED: dict[str, Any] = {"verified_at": NOW, "verified_kind": "operator", "verified_by": "1"}
APPROVED: dict[str, Any] = {**CHECKED, "approved_at": NOW, "approved_kind": "operator", "approved_by": "2"}
HELD: dict[str, Any] = {"state": "on_hold", "held_at": NOW, "hold_review_on": NOW.date()}


def refusal(of: PrivacyCase, values: dict[str, Any]) -> str:
    """The constraint that refuses these values of a case; "" when it takes them."""
    try:
        with transaction.atomic():
            PrivacyCase.objects.filter(pk=of.pk).update(**values)
            transaction.set_rollback(True)
    except IntegrityError as error:
        name: str = error.__cause__.diag.constraint_name  # type: ignore[union-attr]
        return name
    return ""


@pytest.mark.parametrize("state", sorted(set(CaseState) - {"on_hold"}))
@pytest.mark.parametrize("kind", ["access", "restriction"])
def test_nothing_but_a_refusal_without_a_check_of_its_own(person: EndUser, kind: str, state: str) -> None:
    # The other one's check does not help.
    factories.privacy_case(person, type=kind, state="verified")
    case = factories.privacy_case(person, type=kind)
    taken = state in ("received", "refused")
    assert refusal(case, {"state": state}) == ("" if taken else "case_identity_checked")
    assert refusal(case, {"state": state, **CHECKED}) == ""


@pytest.mark.parametrize("held_from", ["received", "verified", "scoped", "approved", "failed"])
def test_nor_by_way_of_a_hold(person: EndUser, held_from: str) -> None:
    case = factories.privacy_case(person)
    held = {**HELD, "held_from": held_from}
    assert refusal(case, held) == ("" if held_from == "received" else "case_identity_checked")
    assert refusal(case, {**held, **CHECKED}) == ""


@pytest.mark.parametrize("state", ["received", "refused"])
def test_no_approval_without_a_check(person: EndUser, state: str) -> None:
    case = factories.privacy_case(person)
    approved = {**APPROVED, "state": state}
    assert refusal(case, {**approved, "verified_at": None}) == "case_approved_once_verified"
    assert refusal(case, approved) == ""


@pytest.mark.parametrize("state", ["approved", "running", "verifying", "completed", "failed"])
def test_no_erasure_without_approval(person: EndUser, state: str) -> None:
    case = factories.privacy_case(person, state="verified")
    assert refusal(case, {"state": state}) == "case_erased_once_approved"
    assert refusal(case, {"state": state, **APPROVED}) == ""
    assert refusal(case, {"state": state, "type": "access"}) == ""


@pytest.mark.parametrize(
    ("values", "taken"),
    [
        # Opened by an operator: anybody else.
        ({"opened_kind": "operator", "opened_by": "1", "approved_by": "2"}, True),
        ({"opened_kind": "operator", "opened_by": "2", "approved_by": "2"}, False),
        ({"opened_kind": "operator", "opened_by": "3", "verified_by": "2", "approved_by": "2"}, True),
        # Opened by a key or a command: anybody but who checked.
        ({"opened_kind": "key", "opened_by": "k", "verified_by": "1", "approved_by": "2"}, True),
        ({"opened_kind": "key", "opened_by": "k", "verified_by": "2", "approved_by": "2"}, False),
        ({"opened_kind": "command", "opened_by": "", "verified_by": "2", "approved_by": "2"}, False),
        # The way of who has a shell.
        ({"opened_kind": "command", "opened_by": "", "approved_kind": "command", "approved_by": ""}, True),
        # Nothing else approves.
        ({"approved_kind": "key", "approved_by": "k"}, False),
        ({"approved_kind": "run", "approved_by": "r"}, False),
        ({"approved_kind": "", "approved_by": ""}, False),
    ],
)
def test_two_people(person: EndUser, values: dict[str, Any], taken: bool) -> None:
    case = factories.privacy_case(person)
    assert refusal(case, {"state": "approved", **APPROVED, **values}) == ("" if taken else "case_two_people")


@pytest.mark.parametrize(
    ("values", "taken"),
    [
        ({**HELD, "held_from": "verified"}, True),
        ({**HELD, "held_from": ""}, False),
        ({**HELD, "held_from": "verified", "held_at": None}, False),
        ({**HELD, "held_from": "verified", "hold_review_on": None}, False),
        ({"state": "verified", "held_from": "received"}, False),
        ({"state": "verified", "held_from": ""}, True),
        # What is told of a hold that is over.
        ({"state": "verified", "held_at": NOW, "hold_review_on": NOW.date()}, True),
    ],
)
def test_a_hold_knows_where_it_goes_on(person: EndUser, values: dict[str, Any], taken: bool) -> None:
    case = factories.privacy_case(person, state="verified")
    assert refusal(case, values) == ("" if taken else "case_held_from_somewhere")


def test_a_token_and_a_tombstone_are_there_once(person: EndUser) -> None:
    case = factories.privacy_case(person)
    factories.privacy_export(case, token_digest=b"t" * 32)
    factories.privacy_export(case, token_digest=None)
    factories.privacy_export(case, token_digest=None)
    with pytest.raises(IntegrityError, match="export_token_once"), transaction.atomic():
        factories.privacy_export(case, token_digest=b"t" * 32)
    stone = {"digest": b"d" * 32, "policy": "flag", "case_uuid": case.pk, "created_at": NOW}
    Tombstone.objects.create(tenant=person.tenant, **stone)
    Tombstone.objects.create(tenant=factories.tenant(), **stone)
    with pytest.raises(IntegrityError, match="tombstone_once"), transaction.atomic():
        Tombstone.objects.create(tenant=person.tenant, **{**stone, "created_at": NOW + timedelta(days=1)})
