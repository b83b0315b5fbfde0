"""`manage.py systemd_units`: the units with which systemd runs this installation, from the programs of this process.

With the embedded PostgreSQL one unit runs the whole hub. With a server elsewhere they are three, as in
docker-compose.yml: who owns the tables is told to the migration alone.
"""

import getpass
import os
import pwd
import re
import shutil
import sys
from argparse import ArgumentParser
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

ROOT = 0
# Web and worker end within 12 seconds, whatever they do; the database after them.
STOP_SECONDS = 90
# Units read spaces, quotes, % and $ otherwise, each setting in its own way.
PLAIN = re.compile(r"[\w/.+@-]+")
UNIT = """\
[Unit]
Description=Memory Hub: {title}
Wants=network-online.target
After={after}
{requires}
[Service]
Type={type}
User={user}
Environment=MEMORYHUB_HOME={home}
{files}
ExecStart={program} {command}
{goes_on}
KillMode=mixed
TimeoutStartSec={start_seconds}
TimeoutStopSec={stop_seconds}
UMask=0077
# Nothing is written but to its own folder, and no right is left to gain.
NoNewPrivileges=yes
CapabilityBoundingSet=
ProtectSystem=strict
ReadWritePaths={written}
ProtectHome=read-only
PrivateTmp=yes
PrivateDevices=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectControlGroups=yes
RestrictSUIDSGID=yes
RestrictNamespaces=yes
LockPersonality=yes
"""
INSTALLED = """
[Install]
WantedBy=multi-user.target
"""


@dataclass(frozen=True)
class Unit:
    """One of them: what it is called, runs and waits for, and whether it goes on."""

    name: str
    title: str
    command: str
    waits_for: str = ""
    is_once: bool = False


_MIGRATION = "memory-hub-migrate.service"
WHOLE = (Unit("memory-hub", "the whole hub", "up"),)
APART = (
    Unit("memory-hub-migrate", "the tables", "migrate --noinput", is_once=True),
    Unit("memory-hub-web", "API and admin", "web", waits_for=_MIGRATION),
    Unit("memory-hub-worker", "background work", "worker", waits_for=_MIGRATION),
)


class Command(BaseCommand):
    help = "Print the units with which systemd runs the hub as it is installed here, or write them into a folder."
    # They are wanted before anything of the hub runs.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--user", help="The account that runs the hub (default: yours).")
        parser.add_argument(
            "--apart",
            action="store_true",
            help="PostgreSQL runs elsewhere (DATABASE_URL): migration, web and worker are units of their own.",
        )
        parser.add_argument(
            "--environment",
            default="/etc/memory-hub",
            help="The folder of hub.env, with settings, and owner.env, with MEMORYHUB_OWNER_URL (%(default)s).",
        )
        parser.add_argument("--write", type=Path, metavar="FOLDER", help="E.g. /etc/systemd/system.")

    def handle(self, **options: Any) -> None:
        user, folder = options["user"] or getpass.getuser(), Path(options["environment"])
        units = APART if options["apart"] else WHOLE
        texts = {f"{unit.name}.service": text_of(unit, user=user, folder=folder) for unit in units}
        if options["write"] is None:
            self.stdout.write("\n".join(f"# {name}\n{text}" for name, text in texts.items()))
            return
        try:
            for name, text in texts.items():
                (options["write"] / name).write_text(text, encoding="utf-8")
        except OSError as error:
            raise CommandError(f"The units cannot be written to {options['write']}: {error.strerror}.") from error
        _give(Path(settings.HOME), user)
        begun = " ".join(unit.name for unit in units if not unit.is_once)
        self.stdout.write(f"Written. Start them: systemctl daemon-reload && systemctl enable --now {begun}")


def text_of(unit: Unit, *, user: str, folder: Path) -> str:
    """The unit's file; `folder` has the files of settings."""
    files = ["hub.env", *(["owner.env"] if unit.is_once else [])]
    home = _plain(str(Path(settings.HOME).resolve()))
    text = UNIT.format(
        title=unit.title,
        after=" ".join(filter(None, ["network-online.target", unit.waits_for])),
        requires=f"Requires={unit.waits_for}\n" if unit.waits_for else "",
        type="oneshot" if unit.is_once else "exec",
        user=_plain(user),
        files="\n".join(f"EnvironmentFile=-{_plain(str(folder / name))}" for name in files),
        home=home,
        written=" ".join(_plain(path) for path in [home, *_written_besides()]),
        program=" ".join(map(_plain, program())),
        command=unit.command,
        goes_on="RemainAfterExit=yes" if unit.is_once else "Restart=always\nRestartSec=2",
        # An upgrade of large tables takes its time.
        start_seconds="infinity" if unit.is_once else STOP_SECONDS,
        stop_seconds=STOP_SECONDS,
    )
    return text if unit.is_once else text + INSTALLED


def _give(home: Path, user: str) -> None:
    """The account gets what root owns in the hub's folder: its secrets are made as soon as any command runs there.

    What belongs to somebody else stays theirs. Errors: CommandError.
    """
    if os.geteuid() != ROOT:
        return
    try:
        account = pwd.getpwnam(user)
    except KeyError:
        raise CommandError(
            f"The units are written, but there is no account {user!r} to run them. Make it and call this again, or "
            "name another with --user."
        ) from None
    for path in (home, *home.rglob("*")) if home.exists() else ():
        if path.lstat().st_uid == ROOT:
            os.chown(path, account.pw_uid, account.pw_gid, follow_symlinks=False)


def _written_besides() -> list[str]:
    """Folders outside the home that backups are written to."""
    home = Path(settings.HOME).resolve()
    dumps = settings.MEMORYHUB_BACKUP_FOLDER if settings.MEMORYHUB_BACKUP_NIGHTLY == "dump" else ""
    folders = [Path(path) for path in (settings.MEMORYHUB_ARCHIVE, dumps) if path]
    return [str(path) for path in folders if not path.resolve().is_relative_to(home)]


def program() -> list[str]:
    """How the hub's commands are called: the program that pip installed, else manage.py with this Python."""
    manage = settings.BASE_DIR / "manage.py"
    if manage.is_file():
        return [sys.executable, str(manage)]
    installed = shutil.which("memoryhub", path=str(Path(sys.executable).parent))
    return [installed] if installed else [sys.executable, "-m", "memoryhub"]


def _plain(word: str) -> str:
    """The word, if it means itself wherever units have it. Errors: CommandError."""
    if not PLAIN.fullmatch(word):
        raise CommandError(f"{word!r} cannot be in a unit: use letters, digits and / . _ - + @ alone.")
    return word
