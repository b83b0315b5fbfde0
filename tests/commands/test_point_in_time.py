"""A hub of its own goes back to a moment: what was lost is back; who was erased and what was withdrawn is not."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from memoryhub import embedded_postgres
from memoryhub.embedded_postgres import locks, recovery
from memoryhub.embedded_postgres.place import RESTORED, locate
from tests import homes
from tests.scratch import scratch_folder

# What processes of the hub do here, one after the other; each prints an object.
IN_THE_HUB = """
import json, sys
from django.core.management import call_command
from django.utils import timezone
from memories.models import *
from tests import factories
def state():
    people = EndUser.objects.filter(tenant__slug="pitr")
    return {
        "people": sorted(people.values_list("external_id", flat=True)),
        "restricted": sorted(people.exclude(restricted_at=None).values_list("external_id", flat=True)),
        "facts": sorted(Fact.objects.filter(end_user__in=people, status="active").values_list("content", flat=True)),
        "turns": sorted(Turn.objects.filter(end_user__in=people).values_list("content", flat=True)),
        "revoked": [key.objects.get(tenant__slug="pitr").revoked_at is not None for key in (APIKey, ManagementKey)],
        "active": Operator.objects.get(username="pitr").is_active,
    }
"""
BEFORE = """
from memories.curation.facts.adding import FactDraft, add_fact
tenant = factories.tenant(slug="pitr")
for name in ("bo", "li", "ed"):
    person = factories.end_user(tenant, external_id=name)
    draft = FactDraft(content=f"{name} lives in Leiden.", category="identity")
    add_fact(end_user=person, draft=draft, actor=factories.COMMAND, now=timezone.now())
    factories.session(person, [("user", f"{name} lives in Leiden."), ("user", f"{name} is shy.")])
factories.api_key(tenant)
call_command("create_management_key", name="terraform", tenant="pitr", stdout=sys.stderr)
factories.operator(username="pitr")
call_command("backup", "--base", stdout=sys.stderr)
"""
SINCE = """
from memories.curation.access.keys import revoke_api_key
from memories.curation.facts.forgetting import forget_fact
from memories.curation.turns import redact_turn
by = {"tenant": None, "actor": factories.COMMAND, "now": timezone.now()}
call_command("erase_user", tenant="pitr", user="li", stdout=sys.stderr)
forget_fact(fact_id=Fact.objects.get(end_user__external_id="bo").pk, **by)
redact_turn(turn_id=Turn.objects.get(content="bo is shy.").pk, **by)
revoke_api_key(key=APIKey.objects.get(tenant__slug="pitr"), actor=factories.COMMAND, now=timezone.now())
ManagementKey.objects.update(revoked_at=timezone.now())
EndUser.objects.filter(external_id="ed").update(restricted_at=timezone.now())
Operator.objects.filter(username="pitr").update(is_active=False)
factories.end_user(Tenant.objects.get(slug="pitr"), external_id="new")
"""
# Drills beside each other in one process: what each says, or why it fails.
DRILLS = """
import io
from django.core.management import CommandError
def drill(*options):
    said = io.StringIO()
    try:
        call_command("restore_drill", *options, stdout=said)
    except CommandError as error:
        return str(error)
    return said.getvalue()
"""


class Life:
    """A home with an archive."""

    def __init__(self, folder: Path) -> None:
        self.home, self.kept = folder / "home", folder / "archive"
        own = {"MEMORYHUB_HOME": str(self.home), "MEMORYHUB_ARCHIVE": str(self.kept), "MEMORYHUB_BACKUP_DAYS": "14"}
        self.environ = {**os.environ, "DJANGO_SETTINGS_MODULE": "memoryhub.settings", **own}

    def manage(self, *arguments: str, **how: Any) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "manage.py", *arguments]
        return subprocess.run(
            command, cwd=settings.BASE_DIR, env=self.environ, capture_output=True, text=True, check=False, **how
        )

    def tell(self, *scripts: str) -> list[dict[str, Any]]:
        """Run them in one process of the hub; what it says of its state after each, and the moment."""
        end = 'print("\\n" + json.dumps({"at": timezone.now().isoformat(), **state()}))'
        whole = "\n".join([IN_THE_HUB, *(f"{script}\n{end}" for script in scripts)])
        done = self.manage("shell", "--no-imports", "--verbosity", "0", "--command", whole)
        assert done.returncode == 0, done.stdout + done.stderr
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


@pytest.fixture
def life() -> Iterator[Life]:
    """Of a hub that no other test uses: it counts its rows, and leaves it in a past."""
    folder = scratch_folder()
    homes.make(folder / "home")
    yield Life(folder)
    embedded_postgres.stop(folder / "home")
    shutil.rmtree(folder)


def test_what_was_lost_is_back_and_who_was_erased_is_not(life: Life) -> None:
    before, since = life.tell(BEFORE, SINCE)
    assert since["people"] == ["bo", "ed", "new"]
    place = locate(life.home)

    users = locks.open_lock(place.users_lock)
    assert locks.try_lock(users, shared=True)
    refused = life.manage("restore", "--to", before["at"], "--replace", "--skip-checks")
    assert "is running: stop it first" in refused.stderr
    os.close(users)
    refused = life.manage("restore", "--to", before["at"], "--skip-checks")
    assert (refused.returncode, "Give --replace" in refused.stderr) == (1, True), refused.stderr
    assert recovery.asides(place) == []

    done = life.manage("restore", "--to", before["at"], "--replace", "--skip-checks")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "People erased again: 1." in done.stdout
    assert len(recovery.asides(place)) == 1
    # As if it had been killed between the two renames.
    place.data.rename(place.with_data(RESTORED).data)
    drills = [("--base",), ("--to", since["at"]), ("--to", "2001-01-01T00:00:00Z")]
    saying = f"{DRILLS}\nstate = lambda: {{'said': [drill(*one) for one in {drills}]}}"
    now, shown = life.tell('call_command("backup", "--base", stdout=sys.stderr)', saying)
    assert now | {"at": ""} == {
        "at": "",
        "people": ["bo", "ed"],
        "restricted": ["ed"],
        "facts": ["bo lives in Leiden.", "ed lives in Leiden."],
        "turns": ["", "bo lives in Leiden.", "ed is shy.", "ed lives in Leiden."],
        "revoked": [True, True],
        "active": False,
    }

    # Shown beside what is there, of which nothing changes. The archive alone counts.
    # And as it was at a moment since, of a life that was given up; before the archive begins is nothing.
    drilled, to_since, never = shown["said"]
    assert "Recovered from the base backup " in drilled
    assert "end users 2, turns 4, facts 2, episodes 0" in drilled, drilled
    assert "People to erase again: 0." in drilled
    assert "The backup can be restored." in drilled
    assert "end users 3, " in to_since
    assert "The backup can be restored." in to_since
    assert "the archive leads to moments from" in never, never
    newest = max((life.kept / "wal").glob("*.gz"), key=lambda path: path.name if "." not in path.stem else "")
    whole = newest.read_bytes()
    newest.write_bytes(whole[: len(whole) // 2])
    broken = life.manage("restore_drill", "--base", "--skip-checks")
    assert (broken.returncode, "The backup cannot be restored." in broken.stderr) == (1, True), broken.stderr
    newest.write_bytes(whole)
    assert not (life.home / "drill").exists()
