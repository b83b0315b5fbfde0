"""The ledger: content-free, once per case, whole after a crash, and what somebody did to it shows."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from memories import conf
from memories.models import CaseState, EndUser, PrivacyCase
from memories.privacy import ledger
from tests import factories
from tests.database import at_once
from tests.factories import NOW

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def path(tmp_path: Path, settings: Any) -> Path:
    settings.MEMORYHUB_ERASURE_LEDGER = str(tmp_path / "erasures.jsonl")
    return tmp_path / "erasures.jsonl"


def case_of(name: str = "anna", **over: Any) -> PrivacyCase:
    owner = over.pop("tenant", None)
    return factories.privacy_case(factories.end_user(owner, external_id=name, **over), state=CaseState.APPROVED)


def note(case: PrivacyCase) -> None:
    ledger.append(case, [bytes(case.subject)], now=NOW)


def noted(count: int = 3) -> list[PrivacyCase]:
    cases = [case_of(f"user-{number}") for number in range(count)]
    for case in cases:
        note(case)
    return cases


class TestALine:
    def test_it_says_who_is_to_be_erased_again(self, path: Path) -> None:
        case = case_of()
        EndUser.objects.create(
            tenant=case.tenant, external_id="ann", merged_into=case.end_user, created_at=NOW, last_seen_at=NOW
        )
        note(case)
        [entry] = ledger.read().entries
        assert (entry.tenant, entry.case, entry.policy, entry.moment) == (case.tenant_id, case.pk, "flag", NOW)
        assert entry.digests == {conf.digest_of_person(case.tenant_id, "anna")}
        assert entry.rows == {ledger.digest_of_row(row) for row in EndUser.objects.values_list("pk", flat=True)}

    def test_it_holds_nothing_of_the_person(self, path: Path) -> None:
        note(case_of("canary-anna", display_name="canary", metadata={"canary": "canary"}))
        text = path.read_text(encoding="ascii")
        assert text.endswith("}\n")
        assert "canary" not in text
        assert str(EndUser.objects.get().pk) not in text
        assert set(json.loads(text)) == {
            *("v", "tenant", "case", "rows", "digests", "spelled", "policy", "at", "after", "signature")
        }

    def test_the_file_is_private_and_on_the_disk(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        synced: list[int] = []
        monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_mode))
        note(case_of())
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert [stat.S_ISREG(mode) for mode in synced] == [True, False]

    def test_once_per_case(self, path: Path) -> None:
        [first, second] = noted(2)
        before = path.read_bytes()
        note(first)
        note(second)
        assert path.read_bytes() == before

    def test_the_same_rows_by_another_case(self, path: Path) -> None:
        """As in a replay; with another policy it says something new."""
        case = case_of()
        note(case)
        again = factories.privacy_case(case.end_user, state=CaseState.APPROVED)  # type: ignore[arg-type]
        note(again)
        assert len(ledger.read().entries) == 1
        again.policy = "refuse"
        note(again)
        assert [entry.policy for entry in ledger.read().entries] == ["flag", "refuse"]

    def test_who_came_back_is_somebody_else(self, path: Path) -> None:
        first = case_of()
        note(first)
        EndUser.objects.all().delete()
        note(case_of(tenant=first.tenant))
        assert len(ledger.read().entries) == 2

    def test_who_was_merged_into_somebody(self, path: Path) -> None:
        case = case_of()
        survivor = factories.end_user(case.tenant)
        EndUser.objects.filter(privacy_cases=case).update(merged_into=survivor)
        note(PrivacyCase.objects.get())
        rows = {ledger.digest_of_row(row.pk) for row in EndUser.objects.all()}
        assert ledger.read().entries[0].rows == rows
        assert len(rows) == 2

    def test_a_name_that_came_meanwhile_is_noted_too(self, path: Path) -> None:
        case = case_of()
        note(case)
        other = conf.digest_of_person(case.tenant_id, "ann")
        ledger.append(case, [bytes(case.subject), other], now=NOW)
        assert [len(entry.digests) for entry in ledger.read().entries] == [1, 2]


class TestWhatFails:
    def test_a_folder_that_is_away(self, path: Path, settings: Any) -> None:
        settings.MEMORYHUB_ERASURE_LEDGER = str(path.parent / "away" / "erasures.jsonl")
        with pytest.raises(ledger.LedgerUnwritable) as refused:
            note(case_of())
        assert refused.value.code == "ledger_unwritable"
        assert list(path.parent.iterdir()) == []

    def test_a_full_disk(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        noted(1)

        def fail(_descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(ledger.LedgerUnwritable):
            note(case_of())

    @pytest.mark.parametrize("bytes_left", [1, 40, -2])
    def test_a_torn_last_line_is_reported_and_repaired(self, path: Path, bytes_left: int) -> None:
        [*kept, torn] = noted()
        whole = path.read_bytes()
        start = whole[:-1].rindex(b"\n") + 1
        path.write_bytes(whole[:start] + whole[start:][:bytes_left])
        found = ledger.read()
        assert [entry.case for entry in found.entries] == [case.pk for case in kept]
        assert found.damage == ((3, "torn"),)
        note(torn)
        assert path.read_bytes() == whole
        assert ledger.read().damage == ()

    def test_a_last_line_without_its_end_stays(self, path: Path) -> None:
        cases = noted()
        path.write_bytes(path.read_bytes()[:-1])
        assert len(ledger.read().entries) == 3
        note(case_of())
        found = ledger.read()
        assert [entry.case for entry in found.entries[:3]] == [case.pk for case in cases]
        assert (len(found.entries), found.damage) == (4, ())


class TestWhatSomebodyDidToIt:
    def lines(self, path: Path) -> list[bytes]:
        return path.read_bytes().splitlines(keepends=True)

    @pytest.mark.parametrize("field", ["case", "tenant", "rows", "digests", "policy", "at", "after"])
    def test_a_changed_line(self, path: Path, field: str) -> None:
        noted()
        first, second, third = self.lines(path)
        values = json.loads(second)
        values[field] = [] if isinstance(values[field], list) else values[field] + "x"
        path.write_bytes(first + json.dumps(values).encode() + b"\n" + third)
        found = ledger.read()
        assert len(found.entries) == 2
        assert (2, "changed") in found.damage

    @pytest.mark.parametrize("gone", [0, 1])
    def test_a_removed_line(self, path: Path, gone: int) -> None:
        noted()
        lines = self.lines(path)
        del lines[gone]
        path.write_bytes(b"".join(lines))
        found = ledger.read()
        assert len(found.entries) == 2
        assert found.damage == ((gone + 1, "gap"),)

    def test_lines_in_another_order(self, path: Path) -> None:
        noted()
        path.write_bytes(b"".join(reversed(self.lines(path))))
        assert {code for _, code in ledger.read().damage} == {"gap"}

    def test_another_pepper_recognises_nothing(self, path: Path, settings: Any) -> None:
        noted()
        settings.MEMORYHUB_PEPPER = "another"
        assert ledger.read().entries == ()

    def test_nothing_stops_the_next_erasure(self, path: Path) -> None:
        noted(2)
        path.write_bytes(b"junk\n" + path.read_bytes())
        note(case_of())
        found = ledger.read()
        assert (len(found.entries), found.damage) == (3, ((1, "changed"),))


@pytest.mark.django_db(transaction=True)
def test_many_at_once_keep_the_chain(path: Path) -> None:
    cases = [case_of(f"user-{number}") for number in range(6)]
    assert at_once(6, lambda index: note(cases[index])) == [None] * 6
    found = ledger.read()
    assert {entry.case for entry in found.entries} == {case.pk for case in cases}
    assert found.damage == ()
