"""manage.py export_user, on cases and runs as they are."""

import json
import stat
import zipfile
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from memories.models import AuditEvent, EndUser, PrivacyCase
from tests import factories
from tests.privacy import exports

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def hub(settings: Settings, tmp_path: Path) -> Path:
    settings.HOME = tmp_path
    return tmp_path


@pytest.fixture
def person() -> EndUser:
    return exports.somebody(factories.tenant(slug="acme"), external_id="u-42")


def export_user(*more: str) -> str:
    said = StringIO()
    call_command("export_user", "--tenant", "acme", "--user", "u-42", *more, stdout=said)
    return said.getvalue()


def test_the_path_is_all_it_prints(person: EndUser, hub: Path) -> None:
    said = export_user()
    case = PrivacyCase.objects.get()
    path = hub / "exports" / f"{case.pk}.zip"
    assert said == f"{path}\n"
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    assert (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode)) == (0o600, 0o700)
    told = json.loads(zipfile.ZipFile(path).read("data.json"))
    assert (told["profile"], told["people"][0]["external_id"]) == ("access", "u-42")
    assert (case.state, case.channel, case.verified_how) == ("completed", "command", "shell")
    export = case.exports.get()
    assert (export.state, export.pieces.count()) == ("taken", 0)
    assert AuditEvent.objects.get(verb="download").actor_kind == "command"


def test_portability_to_a_file_that_is_replaced(person: EndUser, tmp_path: Path) -> None:
    path = tmp_path / "mine.zip"
    path.write_text("an older one")
    path.chmod(0o644)
    assert export_user("--profile", "portability", "--to", str(path)) == f"{path}\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(zipfile.ZipFile(path).read("data.json"))["profile"] == "portability"


def test_where_it_cannot_be_written_the_export_stays(person: EndUser, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(CommandError, match="cannot be written"):
        export_user("--to", str(tmp_path / "folder"))
    assert PrivacyCase.objects.get().exports.get().state == "ready"
    assert [one.name for one in tmp_path.iterdir()] == ["folder"]


def test_a_restricted_person_is_exported(person: EndUser) -> None:
    EndUser.objects.update(restricted_at=factories.NOW)
    assert Path(export_user().strip()).is_file()


def test_an_unknown_tenant(person: EndUser) -> None:
    with pytest.raises(CommandError, match="no tenant nobody"):
        call_command("export_user", "--tenant", "nobody", "--user", "u-42")
    with pytest.raises(CommandError, match="--user: there is none such"):
        call_command("export_user", "--tenant", factories.tenant().slug, "--user", "u-42")
