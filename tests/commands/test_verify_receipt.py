"""verify_receipt: by this hub's key or by one that is given, without a database."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as ours
from django.core.management import CommandError, call_command

from memories.privacy import receipts
from tests.privacy.test_receipts import issued

pytestmark = pytest.mark.django_db
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def path(tmp_path: Path, settings: Any) -> Path:
    settings.HOME = tmp_path
    return receipts.write_files(issued())


def test_as_it_was_issued(path: Path, capsys: Capture) -> None:
    call_command("verify_receipt", str(path))
    assert path.stem in capsys.readouterr().out
    call_command("verify_receipt", str(path), "--key", receipts.public_key())


def test_written_otherwise_it_says_the_same(path: Path) -> None:
    told = json.loads(path.read_bytes())
    path.write_text(json.dumps(dict(reversed(told.items()))), encoding="utf-8")
    call_command("verify_receipt", str(path))


def test_as_the_api_tells_it(path: Path) -> None:
    told = json.loads(path.read_bytes())
    case = {"id": path.stem, "receipt": {**told["receipt"], "signature": told["signature"]}}
    path.write_text(json.dumps(case), encoding="utf-8")
    call_command("verify_receipt", str(path))


@pytest.mark.parametrize("name", ["receipt", "signature"])
def test_changed(path: Path, name: str) -> None:
    told = json.loads(path.read_bytes())
    if name == "receipt":
        told["receipt"]["erased"]["memories.Turn"] += 1
    else:
        told["signature"] = told["signature"][:-4] + "AAA="
    path.write_text(json.dumps(told), encoding="utf-8")
    with pytest.raises(CommandError, match="not as it was issued"):
        call_command("verify_receipt", str(path))


def test_of_another_hub(path: Path, settings: Any) -> None:
    key = receipts.public_key()
    settings.MEMORYHUB_PEPPER = "another"
    # The key that stands in the file proves nothing: whoever changed it could have put their own there.
    with pytest.raises(CommandError, match="another hub"):
        call_command("verify_receipt", str(path))
    call_command("verify_receipt", str(path), "--key", key)


@pytest.mark.parametrize("text", ["", "{}", "[]", "7", '{"receipt": 1, "signature": 2}', "<html>"])
def test_no_receipt(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CommandError, match="is not the JSON file of a receipt"):
        call_command("verify_receipt", str(path))


def test_no_file_and_no_key(path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("verify_receipt", str(path.with_name("none.json")))
    with pytest.raises(CommandError, match="no public key"):
        call_command("verify_receipt", str(path), "--key", "x")


def test_without_a_database(path: Path) -> None:
    environ = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "memoryhub.settings",
        "MEMORYHUB_HOME": str(path.parent),
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
    }
    command = [sys.executable, "manage.py", "verify_receipt", str(path), "--key", receipts.public_key()]
    done = subprocess.run(command, cwd=ours.BASE_DIR, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert path.stem in done.stdout
