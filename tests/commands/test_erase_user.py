"""erase_user: one command, one line on stdout, beside a hub or without one; and what it refuses."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from memories.audit import Actor
from memories.models import (
    ActorKind,
    AuditEvent,
    CaseState,
    CaseType,
    EndUser,
    Fact,
    PrivacyCase,
    Tenant,
    Tombstone,
    Turn,
)
from memories.privacy import break_glass, case_leases, cases, ledger, receipts, running, verification
from tests import factories
from tests.database import elsewhere

pytestmark = pytest.mark.django_db(transaction=True)
STAFF = Actor(kind=ActorKind.OPERATOR, id="7")
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _own_files(tmp_path: Path, settings: Any) -> None:
    settings.HOME = tmp_path
    settings.MEMORYHUB_ERASURE_LEDGER = str(tmp_path / "erasures.jsonl")


@pytest.fixture
def person() -> EndUser:
    person = factories.end_user(external_id="anna-4711")
    factories.session(person, [("user", "My canary is called Bruno"), ("assistant", "Noted")])
    factories.fact(person, "Has a canary called Bruno")
    return person


def erase(tenant: Tenant, user: str = "anna-4711", **over: str) -> None:
    call_command("erase_user", tenant=tenant.slug, user=user, **over)


def opened(person: EndUser, kind: str) -> PrivacyCase:
    return cases.open_case(tenant=person.tenant, user_id=person.external_id, type=kind, actor=STAFF, now=timezone.now())


def step(case: PrivacyCase, verb: Callable[..., PrivacyCase], **given: Any) -> PrivacyCase:
    return verb(case_id=case.pk, expected_version=None, actor=STAFF, now=timezone.now(), **given)


class TestOnePerson:
    def test_all_is_gone_and_the_receipt_is_the_only_line(self, person: EndUser, capsys: Capture) -> None:
        witness = factories.fact(factories.end_user(person.tenant))
        erase(person.tenant)
        [line] = capsys.readouterr().out.splitlines()
        told = json.loads(Path(line).read_bytes())
        assert receipts.verify(told["receipt"], told["signature"])
        assert told["receipt"]["erased"]["memories.Turn"] == 2
        assert told["receipt"]["acted"]["approved"]["kind"] == "command"
        assert "anna" not in json.dumps(told)
        assert list(Fact.objects.all()) == [witness]
        assert not Turn.objects.exists()
        assert Path(line).with_suffix(".html").is_file()

    def test_the_trail_says_that_a_command_did_it(self, person: EndUser) -> None:
        erase(person.tenant, policy="refuse")
        case = PrivacyCase.objects.get()
        assert (case.receipt["channel"], case.verified_how, case.policy) == ("command", "shell", "refuse")
        events = AuditEvent.objects.filter(case_uuid=case.pk, actor_kind=ActorKind.COMMAND)
        assert {"open", "break_glass", "verify", "approve"} <= set(events.values_list("verb", flat=True))
        assert Tombstone.objects.get().policy == "refuse"

    def test_by_another_name(self, person: EndUser, capsys: Capture) -> None:
        EndUser.objects.create(
            tenant=person.tenant,
            external_id="ann",
            merged_into=person,
            created_at=timezone.now(),
            last_seen_at=timezone.now(),
        )
        erase(person.tenant, user="ann")
        assert not EndUser.objects.exists()
        assert Tombstone.objects.count() == 2

    def test_without_a_model(self, person: EndUser, settings: Any) -> None:
        settings.MEMORYHUB_LLM = "off"
        erase(person.tenant)
        assert not EndUser.objects.exists()

    def test_somebody_else_was_quicker(self, person: EndUser, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
        """A worker takes the case the moment that it is approved."""
        real = running.carry_out

        def carry_out(**given: Any) -> PrivacyCase:
            elsewhere(lambda: real(**given))
            return real(**given)

        monkeypatch.setattr(running, "carry_out", carry_out)
        erase(person.tenant)
        assert Path(capsys.readouterr().out.strip()).is_file()
        assert PrivacyCase.objects.get().state == CaseState.COMPLETED


class TestOnceMore:
    def test_erased_before(self, person: EndUser, capsys: Capture) -> None:
        erase(person.tenant)
        first = capsys.readouterr().out
        erase(person.tenant, user=" ANNA-4711")
        again = capsys.readouterr()
        assert again.out == first
        assert "Erased before" in again.err
        assert PrivacyCase.objects.count() == 1

    def test_erased_before_and_the_receipt_is_elsewhere(self, person: EndUser) -> None:
        erase(person.tenant)
        case = PrivacyCase.objects.get().pk
        PrivacyCase.objects.all().delete()
        with pytest.raises(CommandError, match=f"Erased before, as case {case}"):
            erase(person.tenant)

    def test_who_came_back_is_erased_as_well(self, person: EndUser, capsys: Capture) -> None:
        erase(person.tenant)
        factories.session(factories.end_user(person.tenant, external_id="anna-4711"))
        erase(person.tenant)
        assert len(set(capsys.readouterr().out.split())) == 2
        assert not EndUser.objects.exists()
        assert len(ledger.read().entries) == 2

    @pytest.mark.parametrize("state", ["failed", "approved"])
    def test_what_was_begun_goes_on(self, person: EndUser, state: str) -> None:
        case = factories.privacy_case(person, state=state, step="")
        erase(person.tenant)
        assert PrivacyCase.objects.get().pk == case.pk
        assert not EndUser.objects.exists()

    def test_cut_off_it_goes_on(self, person: EndUser, monkeypatch: pytest.MonkeyPatch) -> None:
        def die(**_given: Any) -> PrivacyCase:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(running, "carry_out", die)
            with pytest.raises(KeyboardInterrupt):
                erase(person.tenant)
        assert EndUser.objects.exists()
        erase(person.tenant)
        assert not EndUser.objects.exists()
        assert PrivacyCase.objects.count() == 1

    def test_what_was_found_is_gone_by_now(self, person: EndUser, capsys: Capture, tmp_path: Path) -> None:
        """Nobody has the id any more, and the case is not over."""
        left = tmp_path / "notes.log"
        left.write_text("anna-4711 called")
        for _ in range(2):
            with pytest.raises(CommandError, match=r"failed \(found: files:notes.log\)\. Run this again"):
                erase(person.tenant)
            assert not EndUser.objects.exists()
        case = PrivacyCase.objects.get()
        step(case, cases.hold_case, reason="A claim", review_on=timezone.now().date())
        with pytest.raises(CommandError, match="is on hold"):
            erase(person.tenant)
        step(case, cases.release_case)
        left.unlink()
        erase(person.tenant)
        assert Path(capsys.readouterr().out.strip()).is_file()
        assert PrivacyCase.objects.get().state == CaseState.COMPLETED

    def test_cut_off_before_the_search_it_goes_on(
        self, person: EndUser, capsys: Capture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(verification, "verify", Mock(side_effect=KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                erase(person.tenant)
        assert not EndUser.objects.exists()
        PrivacyCase.objects.update(lease_until=timezone.now())
        erase(person.tenant)
        assert Path(capsys.readouterr().out.strip()).is_file()


class TestRefused:
    def test_nobody(self, person: EndUser) -> None:
        with pytest.raises(CommandError, match="There is no person ben in the tenant"):
            erase(person.tenant, user="ben")
        with pytest.raises(CommandError, match="There is no tenant"):
            call_command("erase_user", tenant="none", user="anna-4711")
        with pytest.raises(CommandError, match="--user: this is not UTF-8"):
            call_command("erase_user", "--tenant", person.tenant.slug, "--user", "anna\udcff")
        assert EndUser.objects.exists()

    @pytest.mark.parametrize("kind", [CaseType.ERASURE, CaseType.ACCESS])
    def test_on_legal_hold(self, person: EndUser, kind: str) -> None:
        case = opened(person, kind)
        day = timezone.now().date() + timedelta(days=30)
        step(case, cases.hold_case, reason="A claim", review_on=day)
        with pytest.raises(CommandError, match=f"Case {case.pk} of this person is on hold"):
            erase(person.tenant)
        assert Fact.objects.exists()
        step(case, cases.release_case)
        erase(person.tenant)
        assert not EndUser.objects.exists()

    def test_the_ledger_cannot_be_written(self, person: EndUser, settings: Any, tmp_path: Path) -> None:
        settings.MEMORYHUB_ERASURE_LEDGER = str(tmp_path / "away" / "erasures.jsonl")
        with pytest.raises(CommandError, match="ledger cannot be written"):
            erase(person.tenant)
        assert Fact.objects.exists()

    def test_what_was_found_fails_it(self, person: EndUser, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
        def find(**given: Any) -> PrivacyCase:
            rows = PrivacyCase.objects.filter(pk=given["case_id"])
            rows.update(state=CaseState.FAILED, failure="found", findings={"hits": {"memories.Turn.content": 2}})
            return rows.get()

        monkeypatch.setattr(running, "carry_out", find)
        with pytest.raises(CommandError, match=r"failed \(found: memories.Turn.content\)"):
            erase(person.tenant)
        assert capsys.readouterr().out == ""

    def test_still_under_way(self, person: EndUser, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(break_glass, "WAIT_SECONDS", 0.0)
        monkeypatch.setattr(case_leases, "claim", lambda case_id: None)
        with pytest.raises(CommandError, match="still under way"):
            erase(person.tenant)
