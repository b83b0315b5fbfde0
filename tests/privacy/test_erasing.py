"""An erasure from the approval to the receipt: all of the person goes, and nothing of anybody else."""

import json
from datetime import timedelta
from typing import Any
from unittest.mock import ANY

import pytest
from django_q.models import OrmQ

from memories import conf, invariants
from memories.curation.facts.editing import edit_fact
from memories.exceptions import LeaseLost
from memories.models import (
    AuditEvent,
    CaseState,
    EndUser,
    Fact,
    FactRevision,
    IdempotencyRecord,
    MemoryGroup,
    PrivacyCase,
    Tenant,
    Tombstone,
)
from memories.models.people.people import NOBODY
from memories.privacy import case_leases, erasing, registry, running
from memories.queue import leases
from tests import factories
from tests.factories import NOW
from tests.privacy.erased_world import (
    Neighbours,
    digest_of,
    erasure,
    known,
    rows_beside,
    somebody,
    stand_in,
    told_to_another,
)

pytestmark = pytest.mark.django_db(transaction=True)
LATER = NOW + timedelta(days=1)


@pytest.fixture
def owner(db: None) -> Tenant:
    return factories.tenant()


@pytest.fixture
def neighbours(monkeypatch: pytest.MonkeyPatch) -> Neighbours:
    return stand_in(monkeypatch)


def carry_out(case: PrivacyCase) -> PrivacyCase:
    return running.carry_out(case_id=case.pk, now=LATER, wait_seconds=30)


def trail_of(case: PrivacyCase) -> list[tuple[str, Any]]:
    return list(AuditEvent.objects.filter(case_uuid=case.pk).order_by("pk").values_list("verb", "counts"))


class TestWhatGoes:
    def test_every_store_held_something_and_holds_nothing(self, owner: Tenant, neighbours: Neighbours) -> None:
        person = somebody(owner, "anneke-7")
        known(factories.end_user(owner), "Told to two", allowed_users=["anneke-7", "else"])
        told_to_another(person)
        before = registry.counts(person)
        assert [label for label, rows in before.items() if not rows and label != "files"] == []
        case = carry_out(erasure(person))
        assert (case.state, case.failure, case.step) == (CaseState.COMPLETED, "", erasing.DONE)
        assert [label for label, rows in registry.counts(person).items() if rows] == []
        assert case.counts.keys() == {label for label, rows in before.items() if rows}
        assert not EndUser.objects.filter(tenant=owner, external_id__startswith="anneke").exists()
        assert invariants.check() == []

    def test_nothing_of_anybody_else_changes(self, owner: Tenant, neighbours: Neighbours) -> None:
        witness, elsewhere = somebody(owner, "witness"), somebody(factories.tenant(), "anneke-7")
        before = rows_beside()
        person = somebody(owner, "anneke-7")
        assert rows_beside() != before
        case = carry_out(erasure(person))
        assert case.state == CaseState.COMPLETED
        # The application knows the person's own group by its id: it stays without its name.
        assert MemoryGroup.objects.filter(name="").delete()[0] == 1
        after = rows_beside()
        kept = _keys_and_staff(before)
        assert {table: rows for table, rows in after.items() if table not in kept} == {
            table: rows for table, rows in before.items() if table not in kept
        }
        assert registry.counts(witness)["memories.Turn"] == 2
        assert EndUser.objects.filter(pk=elsewhere.pk).exists()

    def test_a_tombstone_for_every_name(self, owner: Tenant, neighbours: Neighbours) -> None:
        case = carry_out(erasure(somebody(owner, "anneke-7"), policy="refuse"))
        digests = {conf.digest_of_person(owner.pk, name) for name in ("anneke-7", "anneke-7-old")}
        stones = Tombstone.objects.filter(tenant=owner)
        assert {bytes(stone.digest) for stone in stones} == digests == set(neighbours.digests)
        assert {(stone.policy, stone.case_uuid) for stone in stones} == {("refuse", case.pk)}

    def test_a_fact_for_them_alone_is_for_nobody(self, owner: Tenant, neighbours: Neighbours) -> None:
        other = factories.end_user(owner)
        alone = known(other, "For one", allowed_users=["anneke-7"])
        both = known(other, "For two", allowed_users=["b", "anneke-7-old"])
        carry_out(erasure(somebody(owner, "anneke-7")))
        alone.refresh_from_db()
        both.refresh_from_db()
        assert (alone.allowed_users, both.allowed_users) == ([NOBODY], ["b"])
        told = FactRevision.objects.filter(fact__in=[alone, both]).order_by("pk")
        assert [revision.after["allowed_users"] for revision in told] == [[NOBODY], ["b"]]
        assert invariants.check() == []
        new = factories.end_user(owner, external_id="new")
        assert not Fact.objects.filter(pk=alone.pk).visible_to(new, agent_id="", roles=[]).exists()
        assert Fact.objects.filter(pk=alone.pk).for_agent("").exists()

    def test_the_history_of_a_fact_that_was_for_them_once_names_them_no_more(
        self, owner: Tenant, neighbours: Neighbours
    ) -> None:
        fact = known(factories.end_user(owner), "For one", allowed_users=["anneke-7"])
        edit_fact(fact_id=fact.pk, tenant=owner, changes={"allowed_users": ["b"]}, actor=factories.COMMAND, now=LATER)
        person = somebody(owner, "anneke-7")
        assert registry.counts(person)["memories.Fact.allowed_users"] == 1
        carry_out(erasure(person))
        first, second = FactRevision.objects.filter(fact=fact).order_by("version")
        assert (first.after["allowed_users"], second.before["allowed_users"]) == ([NOBODY], [NOBODY])
        assert second.after["allowed_users"] == ["b"]

    def test_kept_answers_about_a_fact_that_is_for_them_name_them_no_more(
        self, owner: Tenant, neighbours: Neighbours
    ) -> None:
        friend = factories.end_user(owner)
        facts = [
            known(friend, f"For {names}", allowed_users=names) for names in (["anneke-7"], ["anneke-7", "b"], ["b"])
        ]
        bodies = [json.dumps({"id": "1", "allowed_users": fact.allowed_users, "é": 2}).encode() for fact in facts]
        kept = [
            factories.idempotency_record(friend, fact=fact, body=body) for fact, body in zip(facts, bodies, strict=True)
        ]
        carry_out(erasure(somebody(owner, "anneke-7")))
        told = [bytes(IdempotencyRecord.objects.get(pk=row.pk).body) for row in kept]
        assert [json.loads(body)["allowed_users"] for body in told] == [[NOBODY], ["b"], ["b"]]
        # Byte for byte, where they did not name them.
        assert (told[2], list(json.loads(told[0]))) == (bodies[2], ["id", "allowed_users", "é"])

    def test_other_cases_of_theirs_go_on_about_nobody(self, owner: Tenant, neighbours: Neighbours) -> None:
        person = somebody(owner, "anneke-7")
        access = person.privacy_cases.get()
        ticket = factories.privacy_case(person, type="access", reference="T-100", hold_reason="Ask legal")
        carry_out(erasure(person))
        access.refresh_from_db()
        ticket.refresh_from_db()
        assert (access.end_user, access.reference, access.outcome, access.state) == (None, "", "", "received")
        assert (ticket.reference, ticket.hold_reason) == ("T-100", "")

    def test_the_key_of_a_kept_answer_stays_refused(self, owner: Tenant, neighbours: Neighbours) -> None:
        person = somebody(owner, "anneke-7")
        digest = digest_of(person)
        carry_out(erasure(person))
        record = IdempotencyRecord.objects.get()
        assert (record.status, bytes(record.body), bytes(record.key_digest)) == (410, b"", digest)
        assert not record.end_users.exists()


class TestTheRun:
    def test_neighbours_are_asked_in_this_order(self, owner: Tenant, neighbours: Neighbours) -> None:
        case = carry_out(erasure(somebody(owner, "anneke-7"), reference="T-1", told="Acme"))
        assert neighbours.asked == ["ledger", "needles", "verify", "receipt", "files"]
        receipt = {"case": str(case.pk), "told": "Acme"}
        assert (case.receipt, case.signature) == (receipt, "signed")
        # By the database's clock.
        assert case.completed_at
        assert case.started_at
        assert case.completed_at > case.started_at
        assert (bytes(case.needles), case.reference, case.told, case.end_user) == (b"", "T-1", "", None)
        trail = AuditEvent.objects.filter(case_uuid=case.pk).order_by("pk").values_list("verb", flat=True)
        assert list(trail) == ["erase", "complete"]

    def test_a_reference_that_names_them_is_gone_before_the_verification(
        self, owner: Tenant, neighbours: Neighbours
    ) -> None:
        neighbours.findings.hits = {"somewhere": 1}
        case = carry_out(erasure(somebody(owner, "anneke-7"), reference="Mail of Anneke-7", told="Acme"))
        assert (case.state, case.reference, case.told) == (CaseState.FAILED, "", "Acme")

    def test_what_is_found_afterwards_fails_it_with_the_places(self, owner: Tenant, neighbours: Neighbours) -> None:
        neighbours.findings.hits = {"memories.Turn.content": 2}
        case = carry_out(erasure(somebody(owner, "anneke-7")))
        assert (case.state, case.failure) == (CaseState.FAILED, case_leases.FOUND)
        assert case.findings == {"hits": {"memories.Turn.content": 2}}
        assert (case.receipt, bytes(case.needles)) == ({}, b"encrypted")
        assert trail_of(case) == [("erase", ANY), ("fail", {case_leases.FOUND: 2})]
        neighbours.findings.hits = {}
        PrivacyCase.objects.filter(pk=case.pk).update(state=CaseState.APPROVED)
        assert carry_out(case).state == CaseState.COMPLETED

    def test_a_case_without_a_person_ends(self, owner: Tenant, neighbours: Neighbours) -> None:
        person = factories.end_user(owner)
        case = erasure(person)
        PrivacyCase.objects.filter(pk=case.pk).update(end_user=None)
        person.delete()
        assert carry_out(case).state == CaseState.COMPLETED
        assert bytes(Tombstone.objects.get().digest) == case.subject
        assert neighbours.asked == ["ledger", "receipt", "files"]

    def test_one_that_found_nobody_changes_no_decision_of_before(self, owner: Tenant, neighbours: Neighbours) -> None:
        person = somebody(owner, "anneke-7")
        first, second = erasure(person, policy="refuse"), erasure(person, policy="allow_new")
        for case in (first, second):
            assert carry_out(case).state == CaseState.COMPLETED
        stones = Tombstone.objects.values_list("policy", "case_uuid")
        assert set(stones) == {("refuse", first.pk)}
        assert len(stones) == 2

    @pytest.mark.parametrize("state", ["received", "verified", "scoped", "on_hold", "completed", "refused", "failed"])
    def test_nothing_runs_that_was_not_approved(self, owner: Tenant, neighbours: Neighbours, state: str) -> None:
        held = {"held_from": "approved", "held_at": NOW, "hold_review_on": NOW.date()} if state == "on_hold" else {}
        person = factories.end_user(owner)
        case = erasure(person, state=state, **held)
        assert carry_out(case).state == state
        assert EndUser.objects.filter(pk=person.pk).exists()

    def test_an_error_is_noted_and_tried_again_five_times(self, owner: Tenant, monkeypatch: Any) -> None:
        neighbours = stand_in(monkeypatch)
        case = erasure(somebody(owner, "anneke-7"))

        def full(*_: Any, **__: Any) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(neighbours, "append", full)
        # The first attempt got beyond the fence: those after it got nowhere.
        for attempt in range(6):
            PrivacyCase.objects.filter(pk=case.pk).update(lease_until=None)
            with pytest.raises(OSError, match="No space"):
                carry_out(case)
            case.refresh_from_db()
            assert (case.failure, case.lease_token) == ("files", None)
            assert case.state == (CaseState.FAILED if attempt == 5 else CaseState.RUNNING), attempt
            assert trail_of(case) == ([("fail", {"files": 1})] if attempt == 5 else []), attempt
        assert registry.counts(case.end_user)["memories.Turn"] == 2  # type: ignore[arg-type]

    def test_whoever_lost_the_lease_writes_nothing(self, owner: Tenant, neighbours: Neighbours) -> None:
        person = somebody(owner, "anneke-7")
        case = erasure(person)
        work = case_leases.claim(case.pk)
        assert work
        assert case_leases.claim(case.pk) is None
        PrivacyCase.objects.filter(pk=case.pk).update(lease_until=NOW)
        other = case_leases.claim(case.pk)
        assert other
        with pytest.raises(LeaseLost):
            list(erasing.steps(work, now=LATER))
        assert registry.counts(person)["memories.Turn"] == 2
        assert [*erasing.steps(other, now=LATER)][-1] == erasing.VERIFY

    def test_a_worker_that_dies_each_time_takes_five_with_it(self, owner: Tenant, neighbours: Neighbours) -> None:
        case = erasure(factories.end_user(owner))
        for _ in range(leases.MOST_ATTEMPTS):
            assert case_leases.claim(case.pk)
            PrivacyCase.objects.filter(pk=case.pk).update(lease_until=NOW)
        assert case_leases.claim(case.pk) is None
        case.refresh_from_db()
        assert (case.state, case.failure) == (CaseState.FAILED, "worker_lost")
        assert trail_of(case) == [("fail", {"worker_lost": 1})]

    def test_a_slice_ends_between_two_steps(self, owner: Tenant, neighbours: Neighbours) -> None:
        # Each slice looks into all stores: that would be many for somebody of whom each of them holds something.
        person = factories.end_user(owner)
        session = factories.session(person, [("user", "Hello")])
        factories.evidence(factories.fact(person), session.turns.get())
        case = erasure(person)
        slices = 0
        while running.work_on(now=LATER, seconds=0):
            slices += 1
            case.refresh_from_db()
            assert (case.lease_token, case.attempts) == (None, 0)
        case.refresh_from_db()
        assert case.state == CaseState.COMPLETED
        assert slices > 10

    def test_a_wake_up_holds_the_cases_id_alone(self, owner: Tenant) -> None:
        case = erasure(factories.end_user(owner))
        case_leases.wake(case.pk)
        [queued] = OrmQ.objects.all()
        assert (queued.task["func"], queued.task["args"]) == (case_leases.RUN_TASK, (str(case.pk),))


def _keys_and_staff(before: dict[str, Any]) -> set[str]:
    """Tables in which making somebody leaves rows of ours, and those whose rows workers share."""
    return {
        "memories_apikey", "memories_idempotencyrecord", "memories_operator", "memories_batch",
        "memories_endpointstate", "memories_decaypass", "memories_embeddingspace", "axes_accessattemptexpiration",
    } & set(before)  # fmt: skip
