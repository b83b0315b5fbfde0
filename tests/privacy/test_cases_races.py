"""Two at one case, or at two cases of one person: on two connections, with gates."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django_q.models import OrmQ

from memories.audit import Actor
from memories.curation.people.merging.merge import merge_people
from memories.exceptions import NotFound, PersonRestricted, PreconditionFailed
from memories.models import ActorKind, AuditEvent, EndUser, PrivacyCase
from memories.privacy import cases
from memories.privacy.casework import errors
from tests import factories
from tests.database import PATIENCE, at_once, blocked, elsewhere, held, impatient
from tests.factories import LATER, NOW

pytestmark = pytest.mark.django_db(transaction=True)
FIRST, SECOND, THIRD = (Actor(kind=ActorKind.OPERATOR, id=number) for number in "789")
Step = Callable[..., PrivacyCase]

STEPS: dict[str, Step] = {
    "verify": partial(cases.verify_identity, how="signed_in"),
    "approve": partial(cases.approve_case, typed_id="anna-1"),
    "refuse": partial(cases.refuse_case, ground="withdrawn", reason="A letter"),
    "hold": partial(cases.hold_case, reason="A suit", review_on=LATER.date()),
    "release": cases.release_case,
    "extend": partial(cases.extend_case, months=1, reason="Much", notice_on=NOW.date()),
}


@pytest.fixture
def person(db: None) -> EndUser:
    return factories.end_user(external_id="anna-1")


def case_of(person: EndUser, state: str = "received", **over: Any) -> PrivacyCase:
    """Opened and checked by the first operator."""
    case = factories.privacy_case(person, opened_kind="operator", opened_by=FIRST.id, state=state, **over)
    if case in PrivacyCase.objects.restricting():
        EndUser.objects.filter(pk=person.pk).update(restricted_at=NOW)
    return case


def take(name: str, case: PrivacyCase, *, version: int | None = 1, actor: Actor = SECOND) -> PrivacyCase:
    return STEPS[name](case_id=case.pk, expected_version=version, actor=actor, now=LATER)


def restricted(person: EndUser) -> bool:
    return EndUser.objects.filter(pk=person.pk, restricted_at__isnull=False).exists()


def test_of_two_approvals_one_counts(person: EndUser) -> None:
    case = case_of(person, "scoped")
    actors = (SECOND, THIRD)
    outcomes = at_once(2, lambda index: take("approve", case, actor=actors[index]))
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["PreconditionFailed", "PrivacyCase"]
    assert OrmQ.objects.count() == 1
    assert list(AuditEvent.objects.values_list("verb", flat=True)) == ["approve"]
    case.refresh_from_db()
    assert (case.state, case.version) == ("approved", 2)


def test_of_two_who_did_not_look_the_second_is_told(person: EndUser) -> None:
    case = case_of(person, "scoped")
    outcomes = at_once(2, lambda _: take("approve", case, version=None))
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["CaseStepOutOfOrder", "PrivacyCase"]
    assert OrmQ.objects.count() == 1


# State before, who comes first, who waits for them, what becomes of the second who did not look, the state at the end.
MEETINGS = [
    ("scoped", "approve", "refuse", None, "refused"),
    ("scoped", "refuse", "approve", errors.CaseClosed, "refused"),
    ("scoped", "approve", "hold", None, "on_hold"),
    ("scoped", "hold", "approve", errors.CaseHeld, "on_hold"),
    ("received", "verify", "refuse", None, "refused"),
    ("received", "refuse", "verify", errors.CaseClosed, "refused"),
    ("received", "verify", "hold", None, "on_hold"),
    ("received", "hold", "verify", errors.CaseHeld, "on_hold"),
    ("verified", "hold", "refuse", None, "refused"),
    ("verified", "extend", "extend", errors.CaseExtended, "verified"),
    ("on_hold", "release", "release", errors.CaseStepOutOfOrder, "verified"),
    ("on_hold", "release", "refuse", None, "refused"),
]


# Who looked is refused, whatever the two do.
@pytest.mark.parametrize(
    ("state", "first", "second", "refusal", "end", "looked"),
    [*((*meeting, False) for meeting in MEETINGS), *((*MEETINGS[place], True) for place in (0, 3, 10))],
)
def test_two_steps_at_once(
    person: EndUser, *, state: str, first: str, second: str, refusal: Any, end: str, looked: bool
) -> None:
    over = {"held_from": "verified", "held_at": NOW, "hold_review_on": NOW.date()} if state == "on_hold" else {}
    over |= {"verified_at": NOW} if state == "on_hold" else {}
    case = case_of(person, state, **over)
    with held(lambda: take(first, case)):
        waiting = blocked(lambda: take(second, case, version=1 if looked else None))
    expected = PreconditionFailed if looked else refusal
    if expected:
        with pytest.raises(expected):
            waiting.result(PATIENCE)
    else:
        assert waiting.result(PATIENCE).state == end
    case.refresh_from_db()
    assert AuditEvent.objects.count() == case.version - 1 == (1 if expected else 2)
    if not looked:
        assert case.state == end
    # Whatever the order: who is past the check and not closed is restricted, nobody else.
    assert restricted(person) == PrivacyCase.objects.restricting().exists()


@pytest.mark.parametrize(
    ("first", "second", "refusal"),
    [("hold", "approve", errors.CaseElsewhereHeld), ("approve", "hold", errors.CaseElsewhereErased)],
)
def test_one_case_is_held_while_another_is_approved(person: EndUser, first: str, second: str, refusal: Any) -> None:
    of = {"hold": case_of(person, type="access"), "approve": case_of(person, "scoped")}
    with held(lambda: take(first, of[first])):
        waiting = blocked(lambda: take(second, of[second]))
    with pytest.raises(refusal):
        waiting.result(PATIENCE)
    assert OrmQ.objects.count() == (first == "approve")


def test_two_cases_end_at_once_and_nobody_stays_restricted(person: EndUser) -> None:
    one, other = case_of(person, "verified"), case_of(person, "verified", type="restriction")
    assert restricted(person)
    with held(lambda: take("refuse", one)):
        waiting = blocked(lambda: take("refuse", other))
    assert waiting.result(PATIENCE).state == "refused"
    assert not restricted(person)


def test_one_ends_while_another_is_checked(person: EndUser) -> None:
    ending, beginning = case_of(person, "verified"), case_of(person)
    with held(lambda: take("refuse", ending)):
        waiting = blocked(lambda: take("verify", beginning))
    waiting.result(PATIENCE)
    assert restricted(person)


def test_one_is_checked_while_another_ends(person: EndUser) -> None:
    ending, beginning = case_of(person, "verified"), case_of(person)
    with held(lambda: take("verify", beginning)):
        waiting = blocked(lambda: take("refuse", ending))
    waiting.result(PATIENCE)
    assert restricted(person)
    take("refuse", beginning, version=2)
    assert not restricted(person)


def test_who_is_gone_meanwhile_is_not_found(person: EndUser) -> None:
    given: dict[str, Any] = {"tenant": person.tenant, "user_id": "anna-1", "type": "access", "actor": FIRST, "now": NOW}
    with held(lambda: EndUser.objects.filter(pk=person.pk).delete()):
        waiting = blocked(lambda: cases.open_case(**given))
    with pytest.raises(NotFound):
        waiting.result(PATIENCE)
    assert not PrivacyCase.objects.exists()


def test_who_goes_while_the_identity_is_checked(person: EndUser) -> None:
    case = case_of(person)

    def erase() -> Any:
        # As an erasure ends: the person's cases, then the person. The other way round they would wait for each other.
        return list(PrivacyCase.objects.select_for_update()), EndUser.objects.filter(pk=person.pk).delete()

    with held(erase):
        waiting = blocked(lambda: take("verify", case))
    assert waiting.result(PATIENCE).state == "verified"
    case.refresh_from_db()
    assert (case.state, case.end_user) == ("verified", None)


def test_who_goes_after_the_identity_is_checked(person: EndUser) -> None:
    case = case_of(person)
    with held(lambda: take("verify", case)):
        waiting = blocked(lambda: EndUser.objects.filter(pk=person.pk).delete())
    waiting.result(PATIENCE)
    case.refresh_from_db()
    assert (case.state, case.end_user) == ("verified", None)


def test_merged_while_the_identity_is_checked(person: EndUser) -> None:
    survivor = factories.end_user(person.tenant)
    case = case_of(person)

    def merge() -> Any:
        return merge_people(survivor=survivor.pk, merged=person.pk, actor=FIRST, now=NOW)

    with held(merge):
        waiting = blocked(lambda: take("verify", case))
    waiting.result(PATIENCE)
    assert (restricted(person), restricted(survivor)) == (False, True)


def test_checked_while_they_are_merged(person: EndUser) -> None:
    survivor = factories.end_user(person.tenant)
    case = case_of(person)

    def merge() -> Any:
        return merge_people(survivor=survivor.pk, merged=person.pk, actor=FIRST, now=NOW)

    with held(lambda: take("verify", case)):
        waiting = blocked(merge)
    with pytest.raises(PersonRestricted):
        waiting.result(PATIENCE)
    person.refresh_from_db()
    assert (restricted(person), person.merged_into) == (True, None)


MEANWHILE: dict[str, Callable[[PrivacyCase], object]] = {
    "held": lambda case: take("hold", case, version=None),
    "merged": lambda case: merge_people(
        survivor=factories.end_user(case.tenant).pk,
        merged=EndUser.objects.get(privacy_cases=case).pk,
        actor=FIRST,
        now=NOW,
    ),
}


def _impatiently(act: Callable[[PrivacyCase], object], case: PrivacyCase) -> None:
    with impatient():
        act(case)


@pytest.mark.parametrize(("what", "refusal"), [("held", errors.CaseHeld), ("merged", PreconditionFailed), ("", None)])
def test_counting_holds_nobody_up(
    person: EndUser, monkeypatch: pytest.MonkeyPatch, what: str, refusal: type[Exception] | None
) -> None:
    """It may take seconds: the case is not locked meanwhile, and what was counted in vain is not stored."""
    case = case_of(person, "verified", type="access")

    def counting(_person: EndUser) -> dict[str, int]:
        if what:
            elsewhere(lambda: _impatiently(MEANWHILE[what], case))
        return {"memories.Turn.content": 7}

    monkeypatch.setattr("memories.privacy.cases.mentions.mentions_of", counting)
    scope = partial(cases.scope_case, case_id=case.pk, expected_version=None, policy="flag", actor=SECOND, now=LATER)
    if refusal:
        with pytest.raises(refusal):
            scope()
    else:
        scope()
    case.refresh_from_db()
    assert (case.state, bool(case.preview)) == ({"held": "on_hold", "merged": "verified", "": "scoped"}[what], not what)


def test_what_cannot_be_scoped_is_not_counted(person: EndUser, monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_of(person)
    monkeypatch.setattr("memories.privacy.registry.counts", lambda _person: pytest.fail("counted"))
    with pytest.raises(errors.CaseUnverified):
        cases.scope_case(case_id=case.pk, expected_version=1, policy="flag", actor=SECOND, now=LATER)
