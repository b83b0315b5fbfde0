"""An erasure from the approval to the receipt: all of the person goes, and nothing of anybody else."""

import json
from collections.abc import Iterator
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
    IdempotencyRecord,
    MemoryGroup,
    PrivacyCase,
    Skill,
    Tenant,
    Tombstone,
)
from memories.models.people.people import NOBODY
from memories.privacy import case_leases, erasing, registry, running
from memories.queue import leases
from tests import factories
from tests.factories import LATER, NOW
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


@pytest.fixture
def owner(db: None) -> Tenant:
    return factories.tenant()


@pytest.fixture
def neighbours(monkeypatch: pytest.MonkeyPatch) -> Neighbours:
    return stand_in(monkeypatch)


def carry_out(case: PrivacyCase) -> PrivacyCase:
    return running.carry_out(case_id=case.pk, now=LATER, wait_seconds=30)


def talkative(owner: Tenant) -> EndUser:
    """Of whom there are a turn and a fact that rests on it."""
    person = factories.end_user(owner, external_id="anneke-7")
    factories.evidence(factories.fact(person), factories.session(person).turns.get())
    return person


def trail_of(case: PrivacyCase) -> list[tuple[str, Any]]:
    return list(AuditEvent.objects.filter(case_uuid=case.pk).order_by("pk").values_list("verb", "counts"))


Look = Iterator[None]


def every_store(person: EndUser) -> Look:
    """Held something, and holds nothing."""
    told_to_another(person)
    before = registry.counts(person)
    assert [label for label, rows in before.items() if not rows and label != "files"] == []
    yield
    case = PrivacyCase.objects.get(type="erasure")
    assert (case.state, case.failure, case.step) == (CaseState.COMPLETED, "", erasing.DONE)
    assert [label for label, rows in registry.counts(person).items() if rows] == []
    assert case.counts.keys() == {label for label, rows in before.items() if rows}
    assert not EndUser.objects.filter(tenant=person.tenant, external_id__startswith="anneke").exists()


def tombstones(person: EndUser) -> Look:
    """One for every name."""
    yield
    case = PrivacyCase.objects.get(type="erasure")
    digests = {conf.digest_of_person(person.tenant_id, name) for name in ("anneke-7", "anneke-7-old")}
    stones = Tombstone.objects.filter(tenant=person.tenant_id)
    assert {bytes(stone.digest) for stone in stones} == digests
    assert {(stone.policy, stone.case_uuid) for stone in stones} == {("refuse", case.pk)}


def readers(person: EndUser) -> Look:
    """A fact that was for them alone is for nobody, also in its history."""
    other = factories.end_user(person.tenant, external_id="b")
    alone = known(other, "For one", allowed_users=["anneke-7"])
    both = known(other, "For two", allowed_users=["b", "anneke-7-old"])
    once = known(other, "For them once", allowed_users=["anneke-7"])
    edited: dict[str, Any] = {"tenant": None, "actor": factories.COMMAND, "now": LATER}
    edit_fact(fact_id=once.pk, changes={"allowed_users": ["b"]}, **edited)
    assert registry.counts(person)["memories.Fact.allowed_users"] >= 3
    yield
    for fact, names in ((alone, [NOBODY]), (both, ["b"])):
        fact.refresh_from_db()
        assert fact.allowed_users == fact.revisions.get().after["allowed_users"] == names
    first, second = once.revisions.order_by("version")
    assert (first.after["allowed_users"], second.before["allowed_users"]) == ([NOBODY], [NOBODY])
    assert second.after["allowed_users"] == ["b"]
    new = factories.end_user(person.tenant, external_id="new")
    assert not Fact.objects.filter(pk=alone.pk).visible_to(new, agent_id="", roles=[]).exists()
    assert Fact.objects.filter(pk=alone.pk).for_agent("").exists()


def kept_answers(person: EndUser) -> Look:
    """About a fact that is for them they name them no more; the key of their own stays refused."""
    friend = factories.end_user(person.tenant)
    facts = [known(friend, f"For {names}", allowed_users=names) for names in (["anneke-7"], ["anneke-7", "b"], ["b"])]
    bodies = [json.dumps({"id": "1", "allowed_users": fact.allowed_users, "é": 2}).encode() for fact in facts]
    kept = [
        factories.idempotency_record(friend, fact=fact, body=body) for fact, body in zip(facts, bodies, strict=True)
    ]
    digest = digest_of(person)
    yield
    told = [bytes(IdempotencyRecord.objects.get(pk=row.pk).body) for row in kept]
    assert [json.loads(body)["allowed_users"] for body in told] == [[NOBODY], ["b"], ["b"]]
    # Byte for byte, where they did not name them.
    assert (told[2], list(json.loads(told[0]))) == (bodies[2], ["id", "allowed_users", "é"])
    own = IdempotencyRecord.objects.get(key_digest=digest)
    assert (own.status, bytes(own.body), own.end_users.exists()) == (410, b"", False)


def other_cases(person: EndUser) -> Look:
    """They go on, about nobody."""
    access = person.privacy_cases.get(type="access")
    ticket = factories.privacy_case(person, type="access", reference="T-100", hold_reason="Ask legal")
    yield
    for case, told in ((access, ("", "")), (ticket, ("T-100", ""))):
        case.refresh_from_db()
        assert (case.end_user, case.state, case.outcome) == (None, "received", "")
        assert (case.reference, case.hold_reason) == told


def test_all_of_the_person_goes(owner: Tenant, neighbours: Neighbours) -> None:
    person = somebody(owner, "anneke-7")
    looks = [look(person) for look in (other_cases, readers, kept_answers, every_store, tombstones)]
    for look in looks:
        next(look)
    case = carry_out(erasure(person, policy="refuse", reference="T-1", told="Acme"))
    for look in looks:
        assert next(look, None) is None
    assert set(neighbours.digests) == {bytes(stone.digest) for stone in Tombstone.objects.all()}
    assert neighbours.asked == ["ledger", "needles", "verify", "receipt", "files"]
    receipt = {"case": str(case.pk), "told": "Acme"}
    assert (case.receipt, case.signature) == (receipt, "signed")
    # By the database's clock.
    assert case.completed_at
    assert case.started_at
    assert case.completed_at > case.started_at
    assert (bytes(case.needles), case.reference, case.told, case.end_user) == (b"", "T-1", "", None)
    assert [verb for verb, _ in trail_of(case)] == ["erase", "complete"]
    assert invariants.check() == []


def test_nothing_of_anybody_else_changes(owner: Tenant, neighbours: Neighbours) -> None:
    witness, elsewhere = somebody(owner, "witness"), somebody(factories.tenant(), "anneke-7")
    before = rows_beside()
    person = somebody(owner, "anneke-7")
    assert rows_beside() != before
    case = carry_out(erasure(person))
    assert case.state == CaseState.COMPLETED
    # The application knows the person's own group by its id: it stays without its name.
    assert MemoryGroup.objects.filter(name="").delete()[0] == 1
    # Of a skill that rested on the person alone it stays that there was one, without a word.
    assert Skill.objects.filter(reason=Skill.Reason.NO_EVIDENCE).delete()[0] == 2
    after = rows_beside()
    # A file that waits to be imported can be of anybody (tests/imports/test_uploaded.py).
    kept = _keys_and_staff(before) | {"memories_import", "memories_importpiece"}
    assert {table: rows for table, rows in after.items() if table not in kept} == {
        table: rows for table, rows in before.items() if table not in kept
    }
    assert registry.counts(witness)["memories.Turn"] == 2
    assert EndUser.objects.filter(pk=elsewhere.pk).exists()


class TestTheRun:
    def test_what_is_found_afterwards_fails_it_with_the_places(self, owner: Tenant, neighbours: Neighbours) -> None:
        neighbours.findings.hits = {"memories.Turn.content": 2}
        person = talkative(owner)
        case = carry_out(erasure(person, reference="Mail of Anneke-7", told="Acme"))
        assert (case.state, case.failure) == (CaseState.FAILED, case_leases.FOUND)
        # What names them was gone before the verification.
        assert (case.reference, case.told) == ("", "Acme")
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
        person = talkative(owner)
        first, second = erasure(person, policy="refuse"), erasure(person, policy="allow_new")
        for case in (first, second):
            assert carry_out(case).state == CaseState.COMPLETED
        stones = Tombstone.objects.values_list("policy", "case_uuid")
        assert list(stones) == [("refuse", first.pk)]

    @pytest.mark.parametrize("state", ["received", "verified", "scoped", "on_hold", "completed", "refused", "failed"])
    def test_nothing_runs_that_was_not_approved(self, owner: Tenant, neighbours: Neighbours, state: str) -> None:
        held = {"held_from": "approved", "held_at": NOW, "hold_review_on": NOW.date()} if state == "on_hold" else {}
        person = factories.end_user(owner)
        case = erasure(person, state=state, **held)
        assert carry_out(case).state == state
        assert EndUser.objects.filter(pk=person.pk).exists()

    def test_an_error_is_noted_and_tried_again_five_times(self, owner: Tenant, monkeypatch: Any) -> None:
        neighbours = stand_in(monkeypatch)
        case = erasure(talkative(owner))

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
        assert registry.counts(case.end_user)["memories.Turn"] == 1  # type: ignore[arg-type]

    def test_whoever_lost_the_lease_writes_nothing(self, owner: Tenant, neighbours: Neighbours) -> None:
        person = talkative(owner)
        case = erasure(person)
        work = case_leases.claim(case.pk)
        assert work
        assert case_leases.claim(case.pk) is None
        PrivacyCase.objects.filter(pk=case.pk).update(lease_until=NOW)
        other = case_leases.claim(case.pk)
        assert other
        with pytest.raises(LeaseLost):
            list(erasing.steps(work, now=LATER))
        assert registry.counts(person)["memories.Turn"] == 1
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
        case = erasure(talkative(owner))
        # Each slice looks into all stores: to the end it would be many.
        for _ in range(6):
            assert running.run_slice(now=LATER, seconds=0)
            case.refresh_from_db()
            assert (case.state, case.lease_token, case.attempts) == (CaseState.RUNNING, None, 0)
        assert not running.run_slice(now=LATER, seconds=600)
        case.refresh_from_db()
        assert case.state == CaseState.COMPLETED

    def test_a_wake_up_holds_the_cases_id_alone(self, owner: Tenant) -> None:
        case = erasure(factories.end_user(owner))
        case_leases.enqueue(case.pk)
        [queued] = OrmQ.objects.all()
        assert (queued.task["func"], queued.task["args"]) == (case_leases.RUN_TASK, (str(case.pk),))


def _keys_and_staff(before: dict[str, Any]) -> set[str]:
    """Tables in which making somebody leaves rows of ours, and those whose rows workers share."""
    return {
        "memories_apikey", "memories_idempotencyrecord", "memories_operator", "memories_batch",
        "memories_endpointstate", "memories_decaypass", "memories_embeddingspace", "axes_accessattemptexpiration",
    } & set(before)  # fmt: skip
