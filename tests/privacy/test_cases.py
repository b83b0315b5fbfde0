"""The way of a privacy case: its steps, who may, what they leave behind."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django_q.models import OrmQ

from memories import conf
from memories.audit import Actor
from memories.curation.people.external_ids import change_external_id
from memories.curation.people.merging.merge import merge_people
from memories.curation.reverting import revert
from memories.exceptions import InvalidInput, NotFound, PersonRestricted, PreconditionFailed
from memories.models import ActorKind, AuditEvent, CaseType, ChangeSet, EndUser, PrivacyCase
from memories.privacy import case_leases, cases
from memories.privacy.casework import errors
from memories.privacy.casework.restriction import cases_of
from memories.privacy.casework.workflow import CaseVerb
from tests import factories
from tests.factories import COMMAND, KEY, LATER, NOW

pytestmark = pytest.mark.django_db
FIRST = Actor(kind=ActorKind.OPERATOR, id="7", request_id="r-2")
SECOND = Actor(kind=ActorKind.OPERATOR, id="8", request_id="r-3")
SECRET = "Anna Secret"


@pytest.fixture
def person() -> EndUser:
    return factories.end_user(external_id="anna-1")


def opened(person: EndUser, kind: str = "erasure", *, actor: Actor = FIRST, now: datetime = NOW, **over: Any) -> Any:
    given = {"tenant": person.tenant, "user_id": person.external_id, "type": kind, **over}
    return cases.open_case(actor=actor, now=now, **given)


def seen(case: PrivacyCase, *, actor: Actor = FIRST, now: datetime = LATER) -> dict[str, Any]:
    """How somebody acts on the case as it is now."""
    return {"case_id": case.pk, "expected_version": case.version, "actor": actor, "now": now}


def verified(person: EndUser, kind: str = "erasure", **over: Any) -> PrivacyCase:
    return cases.verify_identity(how="signed_in", **seen(opened(person, kind, **over)))


def scoped(person: EndUser, kind: str = "erasure", **over: Any) -> PrivacyCase:
    return cases.scope_case(policy="refuse", **seen(verified(person, kind, **over)))


def approved(person: EndUser, **over: Any) -> PrivacyCase:
    return cases.approve_case(typed_id=person.external_id, **seen(scoped(person, **over), actor=SECOND))


def woken() -> list[tuple[str, tuple[Any, ...]]]:
    """What waits in the queue: function and arguments."""
    return [(row.task["func"], row.task["args"]) for row in OrmQ.objects.order_by("pk")]


def restricted(person: EndUser) -> bool:
    return EndUser.objects.filter(pk=person.pk, restricted_at__isnull=False).exists()


def test_an_erasure_from_receipt_to_its_run(person: EndUser) -> None:
    factories.session(person)
    case = approved(person)
    case.refresh_from_db()
    assert (case.state, case.version, case.policy) == ("approved", 4, "refuse")
    assert case.preview["memories.Turn"] == 1
    assert (case.opened_kind, case.opened_by) == ("operator", "7")
    assert (case.verified_kind, case.verified_by, case.verified_how) == ("operator", "7", "signed_in")
    assert (case.approved_kind, case.approved_by) == ("operator", "8")
    assert bytes(case.subject) == conf.digest_of_person(person.tenant_id, "anna-1")
    assert woken() == [("memories.tasks.run_case", (str(case.pk),))]


@pytest.mark.parametrize("kind", ["erasure", "access"])
def test_the_first_task_of_a_case_has_as_long_as_those_after_it(person: EndUser, kind: str) -> None:
    case = approved(person) if kind == "erasure" else cases.run_case(**seen(verified(person, kind)))
    case_leases.enqueue(case.pk)
    assert [row.task["timeout"] for row in OrmQ.objects.order_by("pk")] == [6 * 3600] * 2


def test_every_step_is_in_the_trail_of_the_case_without_content(person: EndUser) -> None:
    case = opened(person, reference=SECRET, channel=SECRET)
    cases.verify_identity(how="signed_in", **seen(case))
    case.refresh_from_db()
    case = cases.extend_case(months=1, reason=SECRET, notice_on=LATER.date(), **seen(case))
    case = cases.hold_case(reason=SECRET, review_on=LATER.date(), **seen(case))
    case = cases.release_case(**seen(case))
    case = cases.tell_recipients(told=SECRET, **seen(case))
    cases.refuse_case(ground="claims", reason=SECRET, **seen(case))
    events = AuditEvent.objects.filter(case_uuid=case.pk).order_by("pk")
    assert [event.verb for event in events] == ["open", "verify", "extend", "hold", "release", "tell", "refuse"]
    assert {(event.object_type, event.object_id, event.tenant_uuid) for event in events} == {
        ("PrivacyCase", case.pk, person.tenant_id)
    }
    assert SECRET not in str([vars(event) for event in events])
    assert SECRET in str(vars(PrivacyCase.objects.get()))


class TestOpening:
    def test_a_month_from_the_receipt(self, person: EndUser) -> None:
        received = NOW - timedelta(days=20)
        case = opened(person, received_at=received)
        assert (case.received_at, case.due_at) == (received, datetime(2026, 11, 14, 9, 12, tzinfo=UTC))
        assert opened(person).received_at == NOW

    @pytest.mark.parametrize(
        ("over", "pointer"),
        [
            ({"received_at": NOW + timedelta(seconds=1)}, "received_at"),
            ({"received_at": NOW - timedelta(days=367)}, "received_at"),
            ({"kind": "forgetting"}, "type"),
            ({"asked_by": "a neighbour"}, "asked_by"),
            ({"channel": "x" * 41}, "channel"),
            ({"reference": "x" * 256}, "reference"),
            ({"reference": "\0"}, "reference"),
        ],
    )
    def test_what_is_not_taken(self, person: EndUser, over: dict[str, Any], pointer: str) -> None:
        with pytest.raises(InvalidInput) as refused:
            opened(person, **over)
        assert [fault.pointer for fault in refused.value.faults] == [pointer]
        assert not PrivacyCase.objects.exists()
        assert not AuditEvent.objects.exists()

    @pytest.mark.parametrize("received", [NOW, NOW - timedelta(days=366)])
    def test_the_ends_of_the_year(self, person: EndUser, received: datetime) -> None:
        assert opened(person, received_at=received).received_at == received

    def test_of_an_unknown_person_or_another_tenants(self, person: EndUser) -> None:
        with pytest.raises(NotFound):
            opened(person, user_id="anna-2")
        with pytest.raises(NotFound):
            opened(person, tenant=factories.tenant())


class TestKeys:
    """A key opens a case and takes no other step."""

    STEPS: dict[str, dict[str, Any]] = {
        "verify_identity": {"how": "signed_in"},
        "scope_case": {"policy": "flag"},
        "approve_case": {"typed_id": "anna-1"},
        "run_case": {},
        "complete_case": {"outcome": "x", "told": ""},
        "hold_case": {"reason": "x", "review_on": LATER.date()},
        "release_case": {},
        "extend_case": {"months": 1, "reason": "x", "notice_on": LATER.date()},
        "tell_recipients": {"told": "x"},
        "refuse_case": {"ground": "claims", "reason": "x"},
    }

    def test_all_verbs_are_here(self) -> None:
        assert {*self.STEPS, "open_case"} == {name for name in vars(cases) if name.split("_")[0] in [*CaseVerb]}

    def test_none_is_a_keys(self, person: EndUser) -> None:
        case = opened(person, actor=KEY)
        for name, given in self.STEPS.items():
            with pytest.raises(errors.CaseNeedsOperator):
                getattr(cases, name)(**seen(case, actor=KEY), **given)
        case.refresh_from_db()
        assert (case.state, case.version) == ("received", 1)

    def test_each_minds_the_version_before_the_state(self, person: EndUser) -> None:
        case = opened(person)
        for name, given in self.STEPS.items():
            with pytest.raises(PreconditionFailed):
                getattr(cases, name)(**{**seen(case), "expected_version": 2}, **given)

    def test_of_a_case_that_is_not_there(self, person: EndUser) -> None:
        case = opened(person)
        for name, given in self.STEPS.items():
            with pytest.raises(NotFound):
                getattr(cases, name)(**{**seen(case), "case_id": uuid4()}, **given)

    def test_each_minds_the_table(self, person: EndUser) -> None:
        case = factories.privacy_case(person, type="restriction", state="refused")
        for name, given in self.STEPS.items():
            with pytest.raises((errors.CaseClosed, errors.CaseStepUnknown)):
                getattr(cases, name)(**seen(case), **given)
        assert not AuditEvent.objects.exists()


class TestApproval:
    def test_takes_another_than_who_opened_it(self, person: EndUser) -> None:
        case = scoped(person)
        with pytest.raises(errors.CaseSamePerson):
            cases.approve_case(typed_id="anna-1", **seen(case, actor=FIRST))
        assert cases.approve_case(typed_id="anna-1", **seen(case, actor=SECOND)).state == "approved"

    @pytest.mark.parametrize("opener", [KEY, COMMAND])
    def test_of_a_keys_or_commands_case_another_than_who_checked(self, person: EndUser, opener: Actor) -> None:
        case = scoped(person, actor=opener)
        with pytest.raises(errors.CaseSamePerson):
            cases.approve_case(typed_id="anna-1", **seen(case, actor=FIRST))
        assert cases.approve_case(typed_id="anna-1", **seen(case, actor=SECOND)).state == "approved"

    def test_who_checked_may_when_somebody_else_opened_it(self, person: EndUser) -> None:
        case = cases.verify_identity(how="document", **seen(opened(person), actor=SECOND))
        case = cases.scope_case(policy="flag", **seen(case, actor=SECOND))
        assert cases.approve_case(typed_id="anna-1", **seen(case, actor=SECOND)).state == "approved"

    @pytest.mark.parametrize("typed", ["", "anna-2", "ANNA-1", " anna-1"])
    def test_takes_the_id_typed(self, person: EndUser, typed: str) -> None:
        case = scoped(person)
        with pytest.raises(InvalidInput) as refused:
            cases.approve_case(typed_id=typed, **seen(case, actor=SECOND))
        assert refused.value.faults[0].pointer == "typed_id"
        assert "anna" not in str(vars(refused.value))
        assert woken() == []

    def test_a_command_goes_alone(self, person: EndUser) -> None:
        case = opened(person, actor=COMMAND)
        case = cases.verify_identity(how="shell", **seen(case, actor=COMMAND))
        case = cases.scope_case(policy="flag", **seen(case, actor=COMMAND))
        case = cases.approve_case(typed_id="", **seen(case, actor=COMMAND))
        assert (case.state, case.approved_kind) == ("approved", "command")
        assert len(woken()) == 1


class TestRunning:
    @pytest.mark.parametrize("kind", ["access", "portability"])
    @pytest.mark.parametrize("made", [verified, scoped])
    def test_an_export_runs_without_a_second_person(self, person: EndUser, kind: str, made: Any) -> None:
        case = cases.run_case(**seen(made(person, kind)))
        assert (case.state, case.approved_at) == ("running", None)
        assert woken() == [("memories.tasks.run_case", (str(case.pk),))]

    @pytest.mark.parametrize(("kind", "state"), [("erasure", "approved"), ("access", "running")])
    def test_what_failed_goes_on(self, person: EndUser, kind: str, state: str) -> None:
        over = {"failure": "hits", "attempts": 5, "step": "deleting", "counts": {"memories.Turn": 3}}
        case = factories.privacy_case(person, type=kind, state="failed", **over)
        case = cases.run_case(**seen(case))
        assert (case.state, case.failure, case.attempts) == (state, "", 0)
        assert (case.step, case.counts) == ("deleting", {"memories.Turn": 3})
        assert len(woken()) == 1


class TestHolding:
    @pytest.mark.parametrize("made", [opened, verified, scoped, approved])
    def test_it_goes_on_where_it_was(self, person: EndUser, made: Any) -> None:
        case = made(person)
        before, waiting = case.state, len(woken())
        case = cases.hold_case(reason="A suit", review_on=LATER.date(), **seen(case))
        assert (case.state, case.held_from, case.held_at) == ("on_hold", before, LATER)
        assert restricted(person) == (before != "received")
        case = cases.release_case(**seen(case))
        assert (case.state, case.held_from) == (before, "")
        # An approved one runs at once; none before.
        assert len(woken()) - waiting == (before == "approved")

    @pytest.mark.parametrize(
        ("over", "pointer"), [({"reason": "  "}, "reason"), ({"review_on": NOW.date()}, "review_on")]
    )
    def test_takes_a_reason_and_a_day_to_come(self, person: EndUser, over: dict[str, Any], pointer: str) -> None:
        given = {"reason": "A suit", "review_on": LATER.date(), **over}
        with pytest.raises(InvalidInput) as refused:
            cases.hold_case(**given, **seen(opened(person)))
        assert refused.value.faults[0].pointer == pointer


class TestHoldsOfOtherCases:
    """A legal hold is of what is kept of the person: a second case is no way round it."""

    def held(self, person: EndUser) -> PrivacyCase:
        return cases.hold_case(reason="A suit", review_on=LATER.date(), **seen(opened(person, "access")))

    def test_nothing_is_approved_meanwhile(self, person: EndUser) -> None:
        case, other = scoped(person), self.held(person)
        with pytest.raises(errors.CaseElsewhereHeld):
            cases.approve_case(typed_id="anna-1", **seen(case, actor=SECOND))
        assert woken() == []
        cases.release_case(**seen(other))
        assert cases.approve_case(typed_id="anna-1", **seen(case, actor=SECOND)).state == "approved"

    def test_nor_run_again_nor_released(self, person: EndUser) -> None:
        self.held(person)
        failed = factories.privacy_case(person, state="failed")
        over = {"verified_at": NOW, "approved_at": NOW, "approved_kind": "operator", "approved_by": "2"}
        over |= {"held_from": "approved", "held_at": NOW, "hold_review_on": NOW.date()}
        waiting = factories.privacy_case(person, state="on_hold", **over)
        for act, case in ((cases.run_case, failed), (cases.release_case, waiting)):
            with pytest.raises(errors.CaseElsewhereHeld):
                act(**seen(case))
        assert woken() == []

    def test_all_else_goes_on(self, person: EndUser) -> None:
        self.held(person)
        assert cases.run_case(**seen(verified(person, "access"))).state == "running"
        assert cases.complete_case(outcome="x", told="", **seen(verified(person, "rectification"))).completed_at

    def test_of_somebody_else_it_means_nothing(self, person: EndUser) -> None:
        self.held(factories.end_user(person.tenant))
        assert approved(person).state == "approved"

    def test_a_command_goes_on(self, person: EndUser) -> None:
        self.held(person)
        assert cases.approve_case(typed_id="", **seen(scoped(person), actor=COMMAND)).state == "approved"

    @pytest.mark.parametrize("state", ["approved", "running", "verifying"])
    def test_it_is_not_promised_while_another_case_erases(self, person: EndUser, state: str) -> None:
        erasure = factories.privacy_case(person, state=state)
        with pytest.raises(errors.CaseElsewhereErased):
            self.held(person)
        PrivacyCase.objects.filter(pk=erasure.pk).update(state="failed")
        assert self.held(person).state == "on_hold"


class TestExtension:
    @pytest.mark.parametrize(("months", "due"), [(1, NOW.replace(month=1, year=2027)), (2, NOW.replace(2027, 2))])
    def test_moves_the_date(self, person: EndUser, months: int, due: datetime) -> None:
        case = opened(person)
        case = cases.extend_case(months=months, reason="Many", notice_on=LATER.date(), **seen(case))
        assert (case.due_at, case.extended_at, case.state) == (due, LATER, "received")
        with pytest.raises(errors.CaseExtended):
            cases.extend_case(months=1, reason="Many", notice_on=LATER.date(), **seen(case))

    @pytest.mark.parametrize(
        ("over", "pointer"),
        [
            ({"months": 0}, "months"),
            ({"months": 3}, "months"),
            ({"reason": ""}, "reason"),
            ({"reason": "x" * 2001}, "reason"),
            # Not told yet; told before it came; told too late.
            ({"notice_on": (LATER + timedelta(days=1)).date()}, "notice_on"),
            ({"notice_on": (NOW - timedelta(days=1)).date()}, "notice_on"),
            ({"notice_on": datetime(2026, 12, 4).date(), "now": datetime(2026, 12, 9, tzinfo=UTC)}, "notice_on"),
        ],
    )
    def test_what_is_not_taken(self, person: EndUser, over: dict[str, Any], pointer: str) -> None:
        given = {"months": 1, "reason": "Many", "notice_on": LATER.date(), **seen(opened(person)), **over}
        with pytest.raises(InvalidInput) as refused:
            cases.extend_case(**given)
        assert refused.value.faults[0].pointer == pointer

    def test_may_be_noted_later_than_it_was_told(self, person: EndUser) -> None:
        given: dict[str, Any] = {"months": 1, "reason": "Many", "notice_on": datetime(2026, 12, 3).date()}
        case = cases.extend_case(**given, **seen(opened(person), now=datetime(2026, 12, 9, tzinfo=UTC)))
        assert case.extended_at


class TestEnds:
    @pytest.mark.parametrize("kind", ["rectification", "restriction"])
    def test_completed_by_hand(self, person: EndUser, kind: str) -> None:
        case = cases.complete_case(outcome="The address", told="The bank", **seen(verified(person, kind)))
        assert (case.state, case.completed_at, case.outcome, case.told) == (
            "completed",
            LATER,
            "The address",
            "The bank",
        )

    def test_recipients_who_were_told_before_stay(self, person: EndUser) -> None:
        case = cases.tell_recipients(told="The bank", **seen(verified(person, "restriction")))
        assert cases.complete_case(outcome="Done", told="", **seen(case)).told == "The bank"

    def test_takes_an_outcome(self, person: EndUser) -> None:
        with pytest.raises(InvalidInput):
            cases.complete_case(outcome=" ", told="", **seen(verified(person, "restriction")))

    @pytest.mark.parametrize(
        ("over", "pointer"), [({"ground": "mood"}, "ground"), ({"ground": ""}, "ground"), ({"reason": ""}, "reason")]
    )
    def test_a_refusal_takes_ground_and_reason(self, person: EndUser, over: dict[str, Any], pointer: str) -> None:
        with pytest.raises(InvalidInput) as refused:
            cases.refuse_case(**{"ground": "claims", "reason": "A suit", **over}, **seen(opened(person)))
        assert refused.value.faults[0].pointer == pointer

    def test_refused_while_it_is_held(self, person: EndUser) -> None:
        case = cases.hold_case(reason="A suit", review_on=LATER.date(), **seen(verified(person)))
        case = cases.refuse_case(ground="claims", reason="A suit", **seen(case))
        assert (case.state, case.held_from) == ("refused", "")
        assert not restricted(person)


class TestRestriction:
    @pytest.mark.parametrize("kind", CaseType)
    def test_by_its_type_from_the_check_to_the_end(self, person: EndUser, kind: str) -> None:
        case = verified(person, kind)
        assert restricted(person) == (kind in ("erasure", "restriction"))
        cases.refuse_case(ground="withdrawn", reason="A letter", **seen(case))
        assert not restricted(person)

    def test_a_second_case_keeps_it_up(self, person: EndUser) -> None:
        erasure, restriction = verified(person), verified(person, "restriction")
        cases.refuse_case(ground="withdrawn", reason="A letter", **seen(erasure))
        assert restricted(person)
        cases.complete_case(outcome="Sorted out", told="", **seen(restriction))
        assert not restricted(person)

    @pytest.mark.parametrize("second", ["received", "access"])
    def test_others_do_not(self, person: EndUser, second: str) -> None:
        erasure = verified(person)
        if second == "access":
            verified(person, "access")
        else:
            opened(person)
        cases.refuse_case(ground="withdrawn", reason="A letter", **seen(erasure))
        assert not restricted(person)

    def test_the_end_of_one_that_does_not_leaves_it(self, person: EndUser) -> None:
        verified(person)
        for case in (verified(person, "access"), opened(person)):
            cases.refuse_case(ground="withdrawn", reason="A letter", **seen(case))
            assert restricted(person)

    def test_it_is_as_old_as_the_first(self, person: EndUser) -> None:
        verified(person)
        cases.verify_identity(how="signed_in", **seen(opened(person), now=LATER + timedelta(days=3)))
        person.refresh_from_db()
        assert person.restricted_at == LATER


class TestMergedPeople:
    """A case of somebody who is merged into another goes on as a case of the other."""

    @pytest.fixture
    def survivor(self, person: EndUser) -> EndUser:
        return factories.end_user(person.tenant, external_id="anna-9")

    def merge(self, person: EndUser, survivor: EndUser) -> None:
        merge_people(survivor=survivor.pk, merged=person.pk, actor=FIRST, now=NOW)

    def test_the_survivor_is_restricted_counted_and_set_free(self, person: EndUser, survivor: EndUser) -> None:
        factories.session(survivor)
        case = opened(person)
        self.merge(person, survivor)
        case = cases.verify_identity(how="signed_in", **seen(case))
        assert (restricted(person), restricted(survivor)) == (False, True)
        case = cases.scope_case(policy="flag", **seen(case))
        assert case.preview["memories.Turn"] == 1
        with pytest.raises(InvalidInput):
            cases.approve_case(typed_id="anna-1", **seen(case, actor=SECOND))
        cases.refuse_case(ground="withdrawn", reason="A letter", **seen(case))
        assert not restricted(survivor)

    def test_of_two_cases_under_two_names_one_keeps_the_restriction(self, person: EndUser, survivor: EndUser) -> None:
        first, second = opened(person), opened(survivor)
        self.merge(person, survivor)
        first, second = (cases.verify_identity(how="signed_in", **seen(case)) for case in (first, second))
        cases.refuse_case(ground="withdrawn", reason="A letter", **seen(second))
        assert restricted(survivor)
        cases.refuse_case(ground="withdrawn", reason="A letter", **seen(first))
        assert not restricted(survivor)

    def test_a_name_that_leads_on_is_opened_for_the_survivor(self, person: EndUser, survivor: EndUser) -> None:
        self.merge(person, survivor)
        case = opened(person)
        assert case.end_user == survivor
        assert bytes(case.subject) == conf.digest_of_person(person.tenant_id, "anna-1")
        assert list(cases_of(survivor)) == [case]

    def test_nobody_under_restriction_is_merged_parted_or_renamed(self, person: EndUser, survivor: EndUser) -> None:
        self.merge(person, survivor)
        third = factories.end_user(person.tenant)
        acts = (
            lambda: self.merge(third, survivor),
            lambda: self.merge(survivor, third),
            lambda: revert(change_set=ChangeSet.objects.get(verb="merge").pk, actor=FIRST, now=NOW),
            lambda: change_external_id(end_user=survivor, external_id="anna-10", keeps_old=True, actor=FIRST, now=NOW),
        )
        case = verified(survivor, "restriction")
        for act in acts:
            with pytest.raises(PersonRestricted):
                act()
        survivor.refresh_from_db()
        cases.complete_case(outcome="Done", told="", **seen(case))
        for act in (acts[3], acts[2]):
            act()


class TestGone:
    """The person was erased by another case: what is open goes on, and finds nothing."""

    def erase(self, person: EndUser) -> None:
        EndUser.objects.filter(pk=person.pk).delete()

    @pytest.mark.parametrize("kind", CaseType)
    @pytest.mark.parametrize("made", [opened, verified])
    def test_any_is_held_released_and_refused(self, person: EndUser, kind: str, made: Any) -> None:
        case = made(person, kind)
        self.erase(person)
        case.refresh_from_db()
        case = cases.hold_case(reason="A suit", review_on=LATER.date(), **seen(case))
        case = cases.release_case(**seen(case))
        assert cases.refuse_case(ground="claims", reason="A suit", **seen(case)).state == "refused"
