"""`manage.py systemd_units`: systemd runs this installation, and who owns the tables is told to the migration alone."""

import configparser
import getpass
import os
import pwd
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command, get_commands, load_command_class

from memories.management.commands import systemd_units


def written(folder: Path, *options: str) -> dict[str, configparser.RawConfigParser]:
    call_command("systemd_units", "--user", getpass.getuser(), "--write", str(folder), *options)
    units = {}
    for path in folder.iterdir():
        # Each setting once, or the later one would count.
        units[path.name] = configparser.RawConfigParser(strict="owner.env" not in path.read_text(), delimiters="=")
        units[path.name].optionxform = str  # type: ignore[assignment,method-assign]
        units[path.name].read(path)
    return units


@pytest.mark.parametrize(
    ("options", "commands"),
    [
        ((), {"memory-hub": "up"}),
        (("--apart",), {"memory-hub-migrate": "migrate", "memory-hub-web": "web", "memory-hub-worker": "worker"}),
    ],
)
def test_each_runs_a_command_of_this_installation(
    options: tuple[str, ...], commands: dict[str, str], tmp_path: Path, settings: Any
) -> None:
    settings.HOME = tmp_path / "home"
    settings.MEMORYHUB_ARCHIVE = "/srv/archive"
    (folder := tmp_path / "units").mkdir()
    units = written(folder, *options)
    assert set(units) == {f"{name}.service" for name in commands}
    for name, command in commands.items():
        service = units[f"{name}.service"]["Service"]
        *program, run = service["ExecStart"].removesuffix(" --noinput").split()
        assert all(Path(part).exists() for part in program)
        assert run == command
        load_command_class(get_commands()[run], run)
        assert service["Environment"] == f"MEMORYHUB_HOME={settings.HOME}"
        assert service["ReadWritePaths"] == f"{settings.HOME} /srv/archive"
        goes_on = command != "migrate"
        assert ("Install" in units[f"{name}.service"]) == ("Restart" in service) == goes_on
        assert ("owner.env" in (folder / f"{name}.service").read_text()) != goes_on
        assert ("Requires" in units[f"{name}.service"]["Unit"]) == (command in ("web", "worker"))


def test_what_a_unit_would_read_otherwise_is_refused(tmp_path: Path, settings: Any) -> None:
    settings.HOME = tmp_path / "50%"
    with pytest.raises(CommandError, match="cannot be in a unit"):
        call_command("systemd_units", "--write", str(tmp_path))
    assert not list(tmp_path.iterdir())
    settings.HOME = tmp_path / "home"
    with pytest.raises(CommandError, match="cannot be written"):
        call_command("systemd_units", "--write", str(tmp_path / "missing"))


def test_what_root_made_is_given_to_the_account(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root: whoever runs this is taken for it, and the account's name for one of this machine."""
    (home := tmp_path / "home").mkdir()
    settings.HOME = home
    (home / "secret_key").touch()
    (home / "link").symlink_to("/etc/passwd")
    (home / "postgres").mkdir()
    account, given = pwd.getpwnam("nobody"), []
    monkeypatch.setattr(systemd_units, "ROOT", os.geteuid())
    monkeypatch.setattr(os, "chown", lambda path, *owner, follow_symlinks: given.append((path, owner, follow_symlinks)))
    with pytest.raises(CommandError, match="no account 'not-there'"):
        call_command("systemd_units", "--user", "not-there", "--write", str(tmp_path))
    assert not given
    call_command("systemd_units", "--user", "nobody", "--write", str(tmp_path))
    owner = (account.pw_uid, account.pw_gid)
    assert {*given} == {(path, owner, False) for path in (home, *home.iterdir())}
    # What is not root's stays as it is.
    given.clear()
    stat = os.lstat
    monkeypatch.setattr(
        Path, "lstat", lambda path: os.stat_result((*stat(path)[:4], os.geteuid() + 1, *stat(path)[5:]))
    )
    call_command("systemd_units", "--user", "nobody", "--write", str(tmp_path))
    assert not given


def test_without_a_folder_it_prints_them(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("systemd_units", "--apart")
    printed = capsys.readouterr().out
    assert all(f"# {unit.name}.service\n[Unit]\n" in printed for unit in systemd_units.APART)
