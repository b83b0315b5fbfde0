"""manage.py export_user, on cases and runs as they are."""

import json
import stat
import zipfile
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
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


def test_a_language_that_is_named(person: EndUser, tmp_path: Path) -> None:
    for language, named in (("", "en"), ("zh-hans", "zh-hans")):
        path = tmp_path / f"{named}.zip"
        export_user("--to", str(path), *(("--language", language) if language else ()))
        assert json.loads(zipfile.ZipFile(path).read("data.json"))["about"]["language"] == named


FORMS: dict[str, Callable[[str], list[tuple[str, str]]]] = {
    "facts": lambda told: [(one["text"], one["user_id"]) for one in map(json.loads, told.splitlines())],
    "mem0": lambda told: [(one["memory"], one["user_id"]) for one in json.loads(told)["results"]],
    "langgraph": lambda told: [
        (one["value"]["content"], one["namespace"][1]) for one in json.loads(told) if one["namespace"][0] == "facts"
    ],
    "jsonl": lambda told: [
        (message["content"], one["user_id"])
        for one in map(json.loads, told.splitlines())
        for message in one["messages"]
    ],
}


def test_forms_of_other_systems_come_in_again(person: EndUser, tmp_path: Path) -> None:
    """Each with what is true now: nothing that waits, has ended or is in the trash."""
    factories.fact(person, "Lived in Delft", status="superseded", valid_to=factories.NOW)
    factories.fact(
        person, "Rents a boat", agent_id="travel", expires_at=timezone.now() + timedelta(days=9), tags=["sea"]
    )
    tenant = factories.tenant(slug="elsewhere")
    for form, told in FORMS.items():
        path = Path(export_user("--as", form).strip())
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        texts = {text for text, _ in told(path.read_text("utf-8"))}
        if form == "jsonl":
            assert texts == {"I moved to Leiden", "How nice"}
        else:
            assert texts == {"Lives in Leiden", "Likes canals", "Rents a boat"}
        said = StringIO()
        namespace = {"namespace": "facts,{user}"} if form == "langgraph" else {}
        call_command("import_memories", str(path), source="auto", tenant="elsewhere", stdout=said, **namespace)
        assert said.getvalue().startswith(f"This is of {form}.")
        here = EndUser.objects.get(tenant=tenant, external_id="u-42")
        if form == "jsonl":
            assert set(here.turns.values_list("content", "role")) == {
                ("I moved to Leiden", "user"),
                ("How nice", "assistant"),
            }
            continue
        assert set(here.facts.values_list("content", flat=True)) == texts
        boat, was = (one.facts.get(content="Rents a boat") for one in (here, person))
        assert (boat.agent_id == "travel") is (form != "langgraph")
        assert boat.expires_at
        assert was.expires_at
        assert timedelta(0) <= was.expires_at - boat.expires_at < timedelta(days=1 if form == "mem0" else 1 / 86400)
        assert boat.first_observed_at == was.first_observed_at
        here.facts.all().delete()
    with pytest.raises(CommandError, match="leave out --profile"):
        export_user("--as", "mem0", "--profile", "portability")


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
    with pytest.raises(CommandError, match="There is no person u-42 in the tenant"):
        call_command("export_user", "--tenant", factories.tenant().slug, "--user", "u-42")
