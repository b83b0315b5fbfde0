"""`manage.py export_user`: all data about a person, or what they provided, as a ZIP file; or their memories in the form
of another system. Prints only the file's path."""

import shutil
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from zipfile import ZipFile

from django.conf import settings
from django.core.management.base import CommandError
from django.db import transaction
from django.utils import timezone

from memories import private_files
from memories.audit import Actor
from memories.exceptions import MemoryHubError
from memories.management import HubCommand, export_forms
from memories.management.arguments import external_id, person_of, tenant_of
from memories.models import EXPORTING, ActorKind, CaseState, CaseType, EndUser, IdentityCheck, PrivacyCase
from memories.privacy import cases, running
from memories.privacy.exports import downloads

COMMAND = Actor(kind=ActorKind.COMMAND)


class Command(HubCommand):
    help = (
        "Open a privacy case, make its export in this process and write it to a file that its owner alone can read; "
        "prints the file's path alone. The hub keeps no copy."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, help="The tenant's slug.")
        parser.add_argument("--user", type=external_id, required=True, help="The person: the caller's user_id.")
        parser.add_argument("--profile", choices=[one.value for one in EXPORTING], default=CaseType.ACCESS.value)
        parser.add_argument(
            "--as",
            dest="form",
            choices=["export", *export_forms.FORMS],
            default="export",
            help="Instead of the export: its facts in the general form or as mem0's, its conversations as lines of "
            "POST /turns, or items of LangGraph's store.",
        )
        parser.add_argument(
            "--language",
            choices=[code for code, _ in settings.LANGUAGES],
            default="",
            help="Of the file; without it the person's, else English.",
        )
        parser.add_argument("--to", type=Path, metavar="FILE", help="Replaced when it exists.")

    def handle(self, *args: Any, **options: Any) -> None:
        form = options["form"]
        if form != "export" and options["profile"] != CaseType.ACCESS:
            raise CommandError("--as: a form of another system is made of all data: leave out --profile.")
        try:
            person = person_of(tenant_of(options["tenant"]), options["user"])
            case = _completed_case(person, options["user"], options["profile"], options["language"])
            name = f"{case.pk}.zip" if form == "export" else f"{case.pk}.{export_forms.SUFFIXES[form]}"
            path = (options["to"] or settings.HOME / "exports" / name).absolute()
            _move(case, path, form, options["user"])
        except MemoryHubError as error:
            raise CommandError(error.detail) from None
        except OSError as error:
            raise CommandError(f"The file cannot be written: {error.strerror}.") from error
        self.stdout.write(str(path))


def _completed_case(person: EndUser, user_id: str, profile: str, language: str) -> PrivacyCase:
    """A new case of this person, completed. Errors: those of its steps; CommandError when one fails."""
    given: dict[str, Any] = {"actor": COMMAND, "now": timezone.now()}
    named: dict[str, Any] = {
        "tenant": person.tenant,
        "user_id": user_id,
        "type": CaseType(profile),
        "channel": "command",
    }
    case: dict[str, Any] = {"case_id": cases.open_case(**named, **given).pk, "expected_version": None, **given}
    cases.verify_identity(how=IdentityCheck.SHELL, **case)
    cases.run_case(language=language, **case)
    done = running.carry_out(case_id=case["case_id"], now=given["now"])
    if done.state != CaseState.COMPLETED:
        raise CommandError(f"The export could not be made: case {done.pk} is {done.state} {done.failure}".rstrip())
    return done


def _move(case: PrivacyCase, path: Path, form: str, user_id: str) -> None:
    """Move the export into the file, in this form. The database deletes its copy once the file is whole."""
    with transaction.atomic():
        download = downloads.take_export(case.exports.get(), COMMAND, timezone.now())
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # The draft has the case in its name, too: an erasure finds what a killed process left.
        if form == "export":
            private_files.write_parts(path, download.parts())
            return
        with download.file, _data(download.file) as data:
            told = export_forms.lines(form, data, user_id=user_id, now=timezone.now())
            private_files.write_parts(path, (line.encode() for line in told))


@contextmanager
def _data(archive: IO[bytes]) -> Iterator[Path]:
    """`data.json` of the export, beside the temporary files of this process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.json"
        with ZipFile(archive).open("data.json") as source, path.open("wb") as target:
            shutil.copyfileobj(source, target)
        yield path
