"""A person is erased by one case while they have another: it stays, tells of nobody, and comes to its end."""

from typing import Any

import pytest

from memories import conf
from memories.audit import Actor
from memories.exceptions import InvalidInput
from memories.models import EXPORTING, ActorKind, CaseType, EndUser, PrivacyCase, PrivacyExport
from memories.privacy import cases, receipts, registry, running
from memories.privacy.casework import workflow
from memories.privacy.casework.restriction import cases_of
from tests import factories
from tests.factories import COMMAND, LATER, NOW

pytestmark = pytest.mark.django_db(transaction=True)
SECOND = Actor(kind=ActorKind.OPERATOR, id="8")
NAME = "anneke-7001"
SECRET = f"{NAME} asked by letter"
# What another case can be in when the erasure comes to its end; another erasure can be at work at the same time.
OPEN = ("received", "verified", "scoped", "approved", "running", "verifying", "on_hold", "failed")
WAYS = {
    "erasure": OPEN,
    "access": ("received", "verified", "scoped", "running", "on_hold", "failed"),
    "portability": ("received", "verified", "scoped", "running", "on_hold", "failed"),
    "rectification": ("received", "verified", "on_hold"),
    "restriction": ("received", "verified", "on_hold"),
}


@pytest.fixture(autouse=True)
def home(settings: Any, tmp_path: Any) -> None:
    settings.HOME = tmp_path
    settings.MEMORYHUB_ERASURE_LEDGER = str(tmp_path / "ledger.jsonl")


@pytest.fixture
def person(db: None) -> EndUser:
    person = factories.end_user(external_id=NAME)
    factories.session(person)
    return person


def step(case: PrivacyCase, *, actor: Actor = COMMAND) -> dict[str, Any]:
    return {"case_id": case.pk, "expected_version": None, "actor": actor, "now": LATER}


def carry_out(case: PrivacyCase) -> PrivacyCase:
    return running.carry_out(case_id=case.pk, now=LATER, wait_seconds=30)


def erase(person: EndUser) -> PrivacyCase:
    """By a case of their own, to its end."""
    case = cases.open_case(tenant=person.tenant, user_id=NAME, type="erasure", actor=COMMAND, now=NOW)
    cases.verify_identity(how="shell", **step(case))
    cases.scope_case(policy="flag", **step(case))
    cases.approve_case(typed_id="", **step(case))
    done = carry_out(case)
    assert (done.state, done.failure, done.findings.get("hits")) == ("completed", "", {})
    assert not EndUser.objects.filter(external_id=NAME).exists()
    return done


def other(person: EndUser, kind: str, state: str) -> PrivacyCase:
    """Opened by letter, and come so far; nobody works on it at the moment."""
    over: dict[str, Any] = {"type": kind, "state": state, "reference": SECRET, "channel": "letter"}
    over |= {"extension_reason": SECRET, "hold_reason": SECRET}
    if state == "on_hold":
        over |= {"held_from": "verified", "held_at": NOW, "hold_review_on": NOW.date(), "verified_at": NOW}
    return factories.privacy_case(person, **over)


def test_others_stay_where_they_are_and_tell_of_nobody(person: EndUser) -> None:
    others = [other(person, kind, state) for kind in CaseType for state in WAYS[kind]]
    erase(person)
    for case in others:
        state = case.state
        case.refresh_from_db()
        assert (case.state, case.end_user) == (state, None)
        assert NAME not in str(vars(case))
        assert bytes(case.subject) == conf.digest_of_person(person.tenant_id, NAME)


def test_a_second_erasure_finds_nothing_and_is_completed(person: EndUser) -> None:
    others = [other(person, "erasure", state) for state in WAYS["erasure"] if state != "on_hold"]
    assert erase(person).counts["memories.Turn"] == 1
    for case in others:
        state = case.state
        if state == "received":
            cases.verify_identity(how="document", **step(case))
        if state in ("received", "verified"):
            scoped = cases.scope_case(policy="refuse", **step(case))
            assert scoped.preview.keys() == {*(store.model for store in registry.all_stores()), "mentions"}
            assert not any(scoped.preview.values())
        if state in ("received", "verified", "scoped"):
            with pytest.raises(InvalidInput):
                cases.approve_case(typed_id="anneke-7002", **step(case, actor=SECOND))
            cases.approve_case(typed_id=NAME, **step(case, actor=SECOND))
        if state == "failed":
            cases.run_case(**step(case))
        done = carry_out(case)
        assert (state, done.state, done.end_user) == (state, "completed", None)
        assert not any(done.counts.values())
        assert receipts.verify(done.receipt, done.signature)
        assert NAME not in str(done.receipt)


def test_an_export_of_nothing_is_completed_without_a_file(person: EndUser) -> None:
    others = [
        other(person, kind, state) for kind in EXPORTING for state in WAYS[kind] if state not in ("scoped", "on_hold")
    ]
    erase(person)
    for case in others:
        if case.state == "received":
            cases.verify_identity(how="document", **step(case))
        if case.state != "running":
            cases.run_case(**step(case))
        done = carry_out(case)
        assert (done.state, done.failure, done.counts) == ("completed", "", {})
    assert not PrivacyExport.objects.exists()


def test_what_needs_no_run_is_completed_or_refused(person: EndUser) -> None:
    others = [(end, other(person, kind, "verified")) for kind in ("rectification", "restriction") for end in (1, 2)]
    erase(person)
    for end, case in others:
        case.refresh_from_db()
        assert workflow.verbs_of(case) == ("complete", "hold", "extend", "tell", "refuse")
        if end == 1:
            assert cases.complete_case(outcome="Erased since", told="", **step(case)).state == "completed"
        else:
            assert cases.refuse_case(ground="withdrawn", reason="Erased since", **step(case)).state == "refused"


def test_who_comes_back_is_not_restricted_by_a_case_of_before(person: EndUser) -> None:
    case = other(person, "restriction", "received")
    erase(person)
    again = factories.end_user(person.tenant, external_id=NAME)
    cases.verify_identity(how="document", **step(case))
    again.refresh_from_db()
    assert again.restricted_at is None
    assert list(cases_of(again)) == []


def test_what_was_held_goes_on_when_a_command_erased_it(person: EndUser) -> None:
    case = other(person, "erasure", "on_hold")
    erase(person)
    assert cases.release_case(**step(case)).state == "verified"
