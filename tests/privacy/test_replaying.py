"""Whom the ledger means in a restored database, and whom it does not."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from memories import conf
from memories.audit import Actor
from memories.models import (
    ActorKind,
    CaseState,
    EndUser,
    ExportState,
    Fact,
    PrivacyCase,
    PrivacyExport,
    Tenant,
    Tombstone,
)
from memories.models.ids import new_id
from memories.privacy import break_glass, ledger, replaying, running
from memories.privacy.ledger import LedgerEntry
from memories.privacy.replaying import Replayed
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db(transaction=True)
COMMAND = Actor(kind=ActorKind.COMMAND)
LATER = NOW + timedelta(days=1)


@pytest.fixture(autouse=True)
def _own_files(tmp_path: Path, settings: Any) -> None:
    settings.HOME = tmp_path
    settings.MEMORYHUB_ERASURE_LEDGER = str(tmp_path / "erasures.jsonl")


@pytest.fixture
def tenant() -> Tenant:
    return factories.tenant()


def entry(tenant: Tenant, *names: str, rows: tuple[EndUser, ...] = (), **over: Any) -> LedgerEntry:
    """As of an erasure a day after the people of the factories were made."""
    given = {
        "tenant": tenant.pk,
        "case": new_id(),
        "rows": frozenset(ledger.digest_of_row(row.pk) for row in rows),
        "digests": frozenset(conf.digest_of_person(tenant.pk, name) for name in names),
        "policy": "flag",
        "moment": LATER,
    }
    return LedgerEntry(**{**given, **over})


def replay(*entries: LedgerEntry) -> Replayed:
    return replaying.replay(entries=entries, actor=COMMAND, now=LATER + timedelta(days=1))


def named(person: EndUser, name: str) -> EndUser:
    return factories.end_user(person.tenant, external_id=name, merged_into=person)


def there() -> set[str]:
    return set(EndUser.objects.values_list("external_id", flat=True))


class TestWhom:
    def test_who_is_there_again_and_nobody_else(self, tenant: Tenant) -> None:
        factories.fact(factories.end_user(tenant, external_id="anna"))
        kept = factories.fact(factories.end_user(tenant, external_id="ben"))
        factories.end_user(external_id="anna")
        done = replay(entry(tenant, "anna", "ann"))
        assert (done.entries, done.erased, done.tombstones, done.failed, done.unclear) == (1, 1, 1, [], [])
        assert there() == {"ben", "anna"}
        assert list(Fact.objects.all()) == [kept]
        assert Tombstone.objects.count() == 2

    def test_who_came_back_since_stays(self, tenant: Tenant) -> None:
        factories.end_user(tenant, external_id="anna", created_at=LATER + timedelta(seconds=1))
        assert replay(entry(tenant, "anna")).erased == 0
        assert there() == {"anna"}

    def test_who_was_called_otherwise_in_the_backup(self, tenant: Tenant) -> None:
        person = factories.end_user(tenant, external_id="maiden-name")
        assert replay(entry(tenant, "anna", rows=(person,))).erased == 1
        assert there() == set()

    def test_a_name_leads_to_the_person(self, tenant: Tenant) -> None:
        person = factories.end_user(tenant, external_id="anna")
        name = named(person, "ann")
        assert replay(entry(tenant, "ann", rows=(person, name))).erased == 1
        assert there() == set()

    def test_two_who_were_not_merged_yet(self, tenant: Tenant) -> None:
        factories.end_user(tenant, external_id="anna")
        factories.end_user(tenant, external_id="ann")
        assert replay(entry(tenant, "anna", "ann")).erased == 2

    def test_who_is_merged_into_somebody_else_is_left_to_a_person(self, tenant: Tenant) -> None:
        """They were parted before the one was erased: the other's memories are not to go."""
        name = named(factories.end_user(tenant, external_id="ben"), "anna")
        done = replay(entry(tenant, "anna", rows=(name,)))
        assert (done.erased, done.unclear) == (0, [name.pk])
        assert there() == {"ben", "anna"}

    def test_the_last_word_counts(self, tenant: Tenant) -> None:
        factories.end_user(tenant, external_id="anna")
        replay(entry(tenant, "anna"), entry(tenant, "anna", policy="refuse", moment=LATER + timedelta(hours=1)))
        assert Tombstone.objects.get().policy == "refuse"

    @pytest.mark.parametrize("backup", ["before", "after"])
    def test_whose_id_differs_in_case_alone_is_somebody_else(self, tenant: Tenant, backup: str) -> None:
        """Two people while both are there; a tombstone takes them for one."""
        person, other = (factories.end_user(tenant, external_id=name) for name in ("Anna", "anna"))
        case = factories.privacy_case(person, state=CaseState.APPROVED)
        ledger.append(case, [bytes(case.subject)], now=LATER)
        [line] = ledger.read().entries
        if backup == "after":
            EndUser.objects.filter(pk=person.pk).delete()

        def meant(one: LedgerEntry) -> set[str]:
            return {found.person.external_id for found in replaying.find([one])[0]}

        assert meant(line) == ({"Anna"} if backup == "before" else set())
        # A line of before this was noted cannot tell them apart.
        assert "anna" in meant(replace(line, spelled=None))
        # The very id is theirs, whatever row it has in the backup.
        EndUser.objects.exclude(pk=other.pk).delete()
        factories.end_user(tenant, external_id="Anna")
        assert meant(line) == {"Anna"}

    def test_a_tenant_that_the_backup_does_not_have(self, tenant: Tenant) -> None:
        done = replay(replace(entry(tenant, "anna"), tenant=new_id()))
        assert (done.erased, done.tombstones) == (0, 0)


class TestTombstones:
    def test_also_where_nobody_is_found(self, tenant: Tenant) -> None:
        one = entry(tenant, "anna", policy="refuse")
        assert replay(one).tombstones == 1
        found = Tombstone.objects.get()
        assert (found.policy, found.case_uuid, found.created_at) == ("refuse", one.case, LATER)

    def test_one_that_is_there_stays_as_it_is(self, tenant: Tenant) -> None:
        one = entry(tenant, "anna")
        replay(one)
        Tombstone.objects.update(met=3)
        assert replay(one).tombstones == 0
        assert Tombstone.objects.get().met == 3


class TestOnceMore:
    def test_twice_does_no_more(self, tenant: Tenant) -> None:
        factories.end_user(tenant, external_id="anna")
        one = entry(tenant, "anna")
        replay(one)
        before = PrivacyCase.objects.count(), Tombstone.objects.count()
        again = replay(one)
        assert (again.erased, again.tombstones) == (0, 0)
        assert (PrivacyCase.objects.count(), Tombstone.objects.count()) == before

    def test_a_failure_leaves_the_others_their_turn(self, tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
        people = [factories.end_user(tenant, external_id=name) for name in ("anna", "ben")]
        entries = [entry(tenant, person.external_id) for person in people]
        real = running.carry_out
        stuck: list[Any] = []

        def carry_out(**given: Any) -> PrivacyCase:
            if not stuck:
                stuck.append(PrivacyCase.objects.get(pk=given["case_id"]).end_user_id)
                raise ledger.LedgerUnwritable
            return real(**given)

        with monkeypatch.context() as patched:
            patched.setattr(running, "carry_out", carry_out)
            done = replay(*entries)
        assert (done.erased, done.failed) == (1, stuck)
        assert len(there()) == 1
        assert replay(*entries).erased == 1
        assert there() == set()

    def test_the_ledger_keeps_the_first_moment(self, tenant: Tenant) -> None:
        """A later one would make who came back between the two erasures one to be erased."""
        person = factories.end_user(tenant, external_id="anna")
        case = factories.privacy_case(person, state=CaseState.APPROVED)
        ledger.append(case, [conf.digest_of_person(tenant.pk, "anna")], now=LATER)
        case.delete()
        before = ledger.read()
        replay(*before.entries)
        assert there() == set()
        assert ledger.read() == before


class TestTheCaseOfTheBackup:
    STATES = ("received", "verified", "scoped", "approved", "running", "verifying", "failed")

    @pytest.mark.parametrize("state", STATES)
    def test_it_goes_on_from_where_it_stood(self, tenant: Tenant, state: str) -> None:
        person = factories.end_user(tenant, external_id="anna")
        begun = state in ("running", "verifying")
        lease = {"lease_token": new_id(), "lease_until": LATER + timedelta(days=3650)} if begun else {}
        case = factories.privacy_case(person, state="running" if begun else state, **lease)
        replaying.settle()
        assert replay(entry(tenant, "anna", case=case.pk)).erased == 1
        assert PrivacyCase.objects.get().pk == case.pk
        assert PrivacyCase.objects.get().state == CaseState.COMPLETED
        assert there() == set()

    def test_it_is_about_one_of_two_who_were_merged_later(self, tenant: Tenant) -> None:
        factories.end_user(tenant, external_id="ann")
        case = factories.privacy_case(factories.end_user(tenant, external_id="anna"), state="approved")
        factories.end_user(tenant, external_id="an")
        assert replay(entry(tenant, "an", "ann", "anna", case=case.pk)).erased == 3
        assert there() == set()
        assert PrivacyCase.objects.filter(state=CaseState.COMPLETED).count() == 3

    def test_what_held_it_up_then_is_over(self, tenant: Tenant) -> None:
        person = factories.end_user(tenant, external_id="anna")
        held = {"held_at": NOW, "hold_review_on": NOW.date(), "held_from": "received"}
        case = factories.privacy_case(person, state="on_hold", **held)
        assert replay(entry(tenant, "anna", case=case.pk)).erased == 1
        case.refresh_from_db()
        assert case.state == CaseState.COMPLETED

    def test_links_of_the_backup_work_no_more(self, tenant: Tenant) -> None:
        case = factories.privacy_case(factories.end_user(tenant), type="access", state="running", lease_token=new_id())
        export = factories.privacy_export(case, token_digest=b"x" * 32)
        assert replaying.settle() == {"exports": 1, "leases": 1}
        export.refresh_from_db()
        assert (export.state, bytes(export.content), export.token_digest) == (ExportState.EXPIRED, b"", None)
        assert replaying.settle() == {"exports": 0, "leases": 0}
        assert PrivacyExport.objects.count() == 1


class TestWhatTheLedgerLacks:
    def test_an_erasure_that_it_does_not_know(self, tenant: Tenant) -> None:
        person = factories.end_user(tenant, external_id="anna")
        case = factories.privacy_case(person, state=CaseState.COMPLETED, completed_at=NOW)
        assert replaying.missing_in([]) == [case.pk]
        assert replaying.missing_in([entry(tenant, "ben", case=case.pk)]) == []
        assert replaying.missing_in([entry(tenant, "anna")]) == []

    def test_cases_that_erased_nobody_are_none_of_it(self, tenant: Tenant) -> None:
        for over in ({"state": "refused"}, {"state": "completed", "type": "access"}, {"state": "approved"}):
            factories.privacy_case(factories.end_user(tenant), **over)
        assert replaying.missing_in([]) == []


def test_a_case_on_hold_is_not_taken_past_it_by_others(tenant: Tenant) -> None:
    person = factories.end_user(tenant, external_id="anna")
    held = {"held_at": NOW, "hold_review_on": NOW.date(), "held_from": "approved"}
    case = factories.privacy_case(person, state="on_hold", approved_at=NOW, approved_kind="command", **held)
    with pytest.raises(Exception, match="on hold"):
        break_glass.erase(case_id=case.pk, policy="flag", actor=COMMAND, now=LATER)
    assert there() == {"anna"}
