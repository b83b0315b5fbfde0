"""Two accounts are not two people: who made one of them approves no erasure with it that day, and the receipt tells."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memories.admin.cases.approvers import approvers
from memories.audit import Actor
from memories.curation.access.invitations import invite
from memories.curation.access.operators import OperatorDraft, add_operator, set_password
from memories.models import EndUser, Operator, PrivacyCase
from memories.privacy import cases, receipts
from memories.privacy.casework import errors
from memories.privacy.trail import second_person
from tests import factories
from tests.admin.cases import case_of, with_receipt
from tests.admin.conftest import signed_in
from tests.admin.pages import page_of, text_of
from tests.privacy.test_receipts import read

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


@pytest.fixture
def lone() -> Operator:
    """A superuser whose account is old."""
    return factories.operator(username="lone", date_joined=timezone.now() - 400 * DAY)


@pytest.fixture
def person() -> EndUser:
    return factories.end_user(external_id="anna-1")


def made_by(maker: Operator, *, ago: timedelta = timedelta(0), name: str = "second") -> Operator:
    draft = OperatorDraft(username=name, is_superuser=True)
    return add_operator(draft=draft, password="a long password", actor=Actor.operator(maker), now=timezone.now() - ago)


def scoped(person: EndUser, opener: Operator) -> PrivacyCase:
    return case_of(person, "scoped", opened_by=str(opener.pk), verified_by=str(opener.pk), verified_at=timezone.now())


def approve(case: PrivacyCase, by: Operator, person: EndUser) -> PrivacyCase:
    return cases.approve_case(
        case_id=case.pk,
        expected_version=case.version,
        typed_id=person.external_id,
        actor=Actor.operator(by),
        now=timezone.now(),
    )


def chained(maker: Operator) -> Operator:
    """Made by somebody whom the first one made."""
    return made_by(made_by(maker, name="between"))


def given_a_password(maker: Operator) -> Operator:
    """An old account of somebody else that the first one took over."""
    other = factories.operator(username="other", date_joined=timezone.now() - 400 * DAY)
    actor = Actor.operator(maker)
    return set_password(operator_id=other.pk, password="known to me", actor=actor, now=timezone.now())


def invited(maker: Operator) -> Operator:
    """An old account of somebody else, for which the first one made a link, perhaps to use it."""
    other = factories.operator(username="other", date_joined=timezone.now() - 400 * DAY)
    return invite(operator_id=other.pk, actor=Actor.operator(maker), now=timezone.now())[0]


def invited_days_ago(maker: Operator) -> Operator:
    """The link worked for three days, so it may have been used today."""
    other = factories.operator(username="other", date_joined=timezone.now() - 400 * DAY)
    return invite(operator_id=other.pk, actor=Actor.operator(maker), now=timezone.now() - 3 * DAY)[0]


@pytest.mark.parametrize("second", [made_by, chained, given_a_password, invited, invited_days_ago])
def test_who_made_the_second_account_that_day_approves_nothing_with_it(
    lone: Operator, person: EndUser, second: Callable[[Operator], Operator]
) -> None:
    case, account = scoped(person, lone), second(lone)
    with pytest.raises(errors.CaseOwnAccount):
        approve(case, account, person)
    page = text_of(signed_in(account).get(page_of(case)))
    assert "within the last 24 hours" in page
    assert page_of(case, "approve") not in page
    # Somebody else may, on the same day.
    colleague = factories.operator(date_joined=timezone.now() - 400 * DAY)
    assert page_of(case, "approve") in text_of(signed_in(colleague).get(page_of(case)))
    assert approve(case, colleague, person).state == "approved"


def test_a_day_later_the_case_and_its_receipt_tell(lone: Operator, person: EndUser) -> None:
    account = made_by(lone, ago=timedelta(hours=25))
    case = approve(scoped(person, lone), account, person)
    assert second_person.ties_of(case) == ["made_by_other", "recent_account"]
    page = text_of(signed_in(lone).get(page_of(case)))
    assert "One of the two accounts created the other." in page


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (lambda lone: made_by(lone, ago=3 * DAY), ["made_by_other", "recent_account"]),
        (lambda lone: made_by(lone, ago=90 * DAY), ["made_by_other"]),
        (given_a_password, ["password_by_other"]),
        (invited, ["password_by_other"]),
        (lambda _: factories.operator(date_joined=timezone.now() - 3 * DAY), ["recent_account"]),
        (lambda _: factories.operator(date_joined=timezone.now() - 40 * DAY), []),
    ],
)
def test_receipts_say_what_ties_the_two(
    lone: Operator, person: EndUser, second: Callable[[Operator], Operator], said: list[str]
) -> None:
    other, now = second(lone), timezone.now()
    case = with_receipt(person, opened_by=str(lone.pk), approved_by=str(other.pk), approved_at=now)
    assert [one["what"] for one in case.receipt["two_people"]] == said
    told = read(case).text
    assert ("An erasure takes two people." in told) is bool(said)
    assert all(one["says"] in told for one in case.receipt["two_people"])
    assert receipts.verify(case.receipt, case.signature)


def test_what_happened_after_the_approval_ties_nobody(lone: Operator, person: EndUser) -> None:
    other = factories.operator(date_joined=timezone.now() - 40 * DAY)
    case = with_receipt(person, opened_by=str(lone.pk), approved_by=str(other.pk), approved_at=timezone.now() - DAY)
    set_password(operator_id=other.pk, password="later", actor=Actor.operator(lone), now=timezone.now())
    assert second_person.ties_of(case) == []


def test_the_page_of_an_older_receipt_is_drawn(person: EndUser) -> None:
    case = with_receipt(person)
    del case.receipt["two_people"]
    assert "What happened" in read(case).text


def test_who_opened_it_is_told_so_as_before(lone: Operator, person: EndUser) -> None:
    case = scoped(person, lone)
    client: Client = signed_in(lone)
    assert "You opened this case." in text_of(client.get(page_of(case)))
    with pytest.raises(errors.CaseSamePerson):
        approve(case, lone, person)


def test_the_form_that_opens_a_case_says_who_can_approve_and_from_when(lone: Operator, person: EndUser) -> None:
    old = factories.operator(username="old", date_joined=timezone.now() - 400 * DAY)
    young, nobody = made_by(lone), factories.operator(username="reader", is_superuser=False)
    first, second = approvers(str(lone.pk), person.tenant, now=timezone.now())
    assert (first.operator, first.since) == (old, None)
    assert second.operator == young
    assert second.since
    assert DAY - timedelta(minutes=5) < second.since - timezone.now() <= DAY
    assert second_person.barred_until(str(lone.pk), str(young.pk), at=second.since) is None
    page = text_of(signed_in(lone).get(f"{reverse('admin:memories_privacycase_add')}?person={person.pk}"))
    assert "Who can approve the erasure" in page
    assert f"<bdi>{nobody.username}</bdi>" not in page
