"""Whom the ledger means in a restored database, and whom it does not."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from memories import conf
from memories.models import (
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
from tests.factories import COMMAND, LATER, NOW

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _own_files(tmp_path: Path, settings: Any) -> None:
    settings.HOME = tmp_path
    settings.MEMORYHUB_ERASURE_LEDGER = str(tmp_path / "erasures.jsonl")


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
    def test_who_is_there_again_and_nobody_else(self) -> None:
        """Each in a tenant of their own: what the backup has, what the ledger says, how many go and who stays."""
        entries: list[LedgerEntry] = []
        left: set[tuple[Any, str]] = set()
        gone = 0

        def case(line: LedgerEntry, erased: int, *stay: str) -> None:
            nonlocal gone
            entries.append(line)
            gone += erased
            left.update((line.tenant, name) for name in stay)

        # By one of their names; the same id in another tenant is somebody else.
        tenant, stranger = factories.tenant(), factories.end_user(external_id="anna")
        left.add((stranger.tenant_id, "anna"))
        factories.fact(factories.end_user(tenant, external_id="anna"))
        kept = factories.fact(factories.end_user(tenant, external_id="ben"))
        case(entry(tenant, "anna", "ann"), 1, "ben")
        # Who came back since.
        tenant = factories.tenant()
        factories.end_user(tenant, external_id="anna", created_at=LATER + timedelta(seconds=1))
        case(entry(tenant, "anna"), 0, "anna")
        # Who was called otherwise in the backup.
        person = factories.end_user(external_id="maiden-name")
        case(entry(person.tenant, "anna", rows=(person,)), 1)
        # A name leads to the person.
        person = factories.end_user(external_id="anna")
        case(entry(person.tenant, "ann", rows=(person, named(person, "ann"))), 1)
        # Two who were not merged yet.
        tenant = factories.tenant()
        for name in ("anna", "ann"):
            factories.end_user(tenant, external_id=name)
        case(entry(tenant, "anna", "ann"), 2)
        # Parted before the one was erased: the other's memories are not to go, and a person has to look.
        person = factories.end_user(external_id="ben")
        unclear = named(person, "anna")
        case(entry(person.tenant, "anna", rows=(unclear,)), 0, "ben", "anna")
        # A tenant that the backup does not have.
        case(replace(entry(tenant, "anna"), tenant=new_id()), 0)
        done = replay(*entries)
        assert (done.entries, done.erased, done.failed, done.unclear) == (len(entries), gone, [], [unclear.pk])
        assert set(EndUser.objects.values_list("tenant", "external_id")) == left
        assert list(Fact.objects.all()) == [kept]
        first = Tombstone.objects.filter(tenant=kept.tenant_id)
        assert {bytes(stone.digest) for stone in first} == {
            conf.digest_of_person(kept.tenant_id, name) for name in ("anna", "ann")
        }

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

    def test_it_goes_on_from_where_it_stood(self) -> None:
        lines = []
        for state in (*self.STATES, "on_hold"):
            person = factories.end_user(external_id="anna")
            begun = state in ("running", "verifying")
            over: dict[str, Any] = (
                {"lease_token": new_id(), "lease_until": LATER + timedelta(days=3650)} if begun else {}
            )
            # What held it up then is over.
            if state == "on_hold":
                over = {"held_at": NOW, "hold_review_on": NOW.date(), "held_from": "received"}
            case = factories.privacy_case(person, state="running" if begun else state, **over)
            lines.append(entry(person.tenant, "anna", case=case.pk))
        replaying.end_leases_and_exports()
        assert replay(*lines).erased == len(lines)
        cases = dict(PrivacyCase.objects.values_list("pk", "state"))
        assert cases == {line.case: CaseState.COMPLETED for line in lines}
        assert there() == set()

    def test_it_is_about_one_of_two_who_were_merged_later(self, tenant: Tenant) -> None:
        factories.end_user(tenant, external_id="ann")
        case = factories.privacy_case(factories.end_user(tenant, external_id="anna"), state="approved")
        factories.end_user(tenant, external_id="an")
        assert replay(entry(tenant, "an", "ann", "anna", case=case.pk)).erased == 3
        assert there() == set()
        assert PrivacyCase.objects.filter(state=CaseState.COMPLETED).count() == 3

    def test_links_of_the_backup_work_no_more(self, tenant: Tenant) -> None:
        case = factories.privacy_case(factories.end_user(tenant), type="access", state="running", lease_token=new_id())
        export = factories.privacy_export(case, token_digest=b"x" * 32)
        assert replaying.end_leases_and_exports() == {"exports": 1, "leases": 1}
        export.refresh_from_db()
        assert (export.state, export.pieces.count(), export.token_digest) == (ExportState.EXPIRED, 0, None)
        assert replaying.end_leases_and_exports() == {"exports": 0, "leases": 0}
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
