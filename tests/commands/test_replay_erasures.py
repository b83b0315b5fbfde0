"""A real backup from before an erasure, restored: the ledger erases again, and who came back later stays."""

from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from memories.models import CaseState, EndUser, Fact, PrivacyCase, Tenant, Tombstone, Turn
from tests import factories

pytestmark = pytest.mark.django_db(transaction=True)
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def ledger_file(tmp_path: Path, settings: Any) -> Path:
    settings.HOME = tmp_path / "home"
    settings.HOME.mkdir()
    settings.MEMORYHUB_ERASURE_LEDGER = str(tmp_path / "erasures.jsonl")
    return tmp_path / "erasures.jsonl"


def told(tenant: Tenant, name: str) -> EndUser:
    person = factories.end_user(tenant, external_id=name)
    factories.session(person, [("user", f"The canary of {name} is yellow")])
    factories.fact(person, f"Has a canary ({name})")
    return person


@pytest.fixture
def tenant(tmp_path: Path) -> Tenant:
    """With Anna and Ben, of whom there is a backup."""
    tenant = factories.tenant()
    told(tenant, "anna-4711")
    told(tenant, "ben-4711")
    call_command("backup", "--to", str(tmp_path / "old.backup"))
    return tenant


def erase(tenant: Tenant, name: str) -> None:
    call_command("erase_user", tenant=tenant.slug, user=name)


def restore(tmp_path: Path, name: str = "old.backup") -> None:
    call_command("restore", "--from", str(tmp_path / name), "--replace")


def there() -> set[str]:
    return set(EndUser.objects.values_list("external_id", flat=True))


def test_the_backup_brings_them_back_and_the_ledger_erases_them(
    tenant: Tenant, tmp_path: Path, capsys: Capture
) -> None:
    erase(tenant, "anna-4711")
    restore(tmp_path)
    assert "Run manage.py replay_erasures" in capsys.readouterr().out
    assert there() == {"anna-4711", "ben-4711"}
    call_command("replay_erasures", "--dry-run")
    assert "People to erase again: 1." in capsys.readouterr().out
    assert there() == {"anna-4711", "ben-4711"}
    call_command("replay_erasures")
    assert "People erased again: 1." in capsys.readouterr().out
    assert there() == {"ben-4711"}
    assert not Turn.objects.filter(content__contains="anna").exists()
    assert Fact.objects.get().content == "Has a canary (ben-4711)"
    assert PrivacyCase.objects.get().receipt["channel"] == "replay"
    call_command("replay_erasures")
    assert "People erased again: 0." in capsys.readouterr().out


def test_who_came_back_later_stays(tenant: Tenant, tmp_path: Path) -> None:
    erase(tenant, "anna-4711")
    factories.session(factories.end_user(tenant), [("user", "Hello")])
    back = factories.session(EndUser(tenant=tenant, external_id="anna-4711"), [("user", "It is me again")])
    assert back.end_user.erased_before
    call_command("backup", "--to", str(tmp_path / "new.backup"))
    # First the old one, whose replay is no later erasure of who came back.
    restore(tmp_path)
    call_command("replay_erasures")
    assert "anna-4711" not in there()
    restore(tmp_path, "new.backup")
    call_command("replay_erasures")
    assert EndUser.objects.get(external_id="anna-4711").pk == back.end_user_id


def test_a_backup_from_the_middle_of_an_erasure(tenant: Tenant, tmp_path: Path) -> None:
    person = EndUser.objects.get(external_id="anna-4711")
    case = factories.privacy_case(person, state=CaseState.APPROVED)
    call_command("backup", "--to", str(tmp_path / "new.backup"))
    erase(tenant, "anna-4711")
    restore(tmp_path, "new.backup")
    assert PrivacyCase.objects.get().state == CaseState.APPROVED
    call_command("replay_erasures")
    assert (PrivacyCase.objects.get().pk, PrivacyCase.objects.get().state) == (case.pk, CaseState.COMPLETED)
    assert there() == {"ben-4711"}


def test_a_new_post_after_the_restore_is_met_by_the_tombstone(tenant: Tenant, tmp_path: Path) -> None:
    call_command("erase_user", tenant=tenant.slug, user="anna-4711", policy="refuse")
    restore(tmp_path)
    assert not Tombstone.objects.exists()
    call_command("replay_erasures")
    assert Tombstone.objects.get().policy == "refuse"


class TestWhatIsLeftToSomebody:
    def test_no_ledger(self, tenant: Tenant, tmp_path: Path) -> None:
        with pytest.raises(CommandError, match="cannot be read: No such file"):
            call_command("replay_erasures", "--ledger", str(tmp_path / "none"))

    def test_a_ledger_that_somebody_changed(self, tenant: Tenant, ledger_file: Path, capsys: Capture) -> None:
        erase(tenant, "anna-4711")
        erase(tenant, "ben-4711")
        ledger_file.write_bytes(ledger_file.read_bytes().replace(b'"flag"', b'"none"', 1))
        with pytest.raises(CommandError, match="To be looked at"):
            call_command("replay_erasures")
        assert "Line 1 is not as the hub wrote it" in capsys.readouterr().err

    def test_an_end_that_was_cut_off(self, tenant: Tenant, ledger_file: Path, capsys: Capture) -> None:
        erase(tenant, "anna-4711")
        erase(tenant, "ben-4711")
        ledger_file.write_bytes(ledger_file.read_bytes().splitlines(keepends=True)[0])
        with pytest.raises(CommandError, match="To be looked at: 1"):
            call_command("replay_erasures")
        case = PrivacyCase.objects.latest("created_at")
        assert f"lacks the erasure of case {case.pk}" in capsys.readouterr().err

    def test_another_file(self, tenant: Tenant, ledger_file: Path, tmp_path: Path) -> None:
        erase(tenant, "anna-4711")
        ledger_file.rename(tmp_path / "kept.jsonl")
        restore(tmp_path)
        ledger_file.write_bytes((tmp_path / "kept.jsonl").read_bytes())
        call_command("replay_erasures", "--ledger", str(tmp_path / "kept.jsonl"))
        assert there() == {"ben-4711"}
