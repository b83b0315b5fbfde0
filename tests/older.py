"""Versions of before, out of the repository's history: their code, and a Python with their libraries."""

import hashlib
import subprocess
import tarfile
from io import BytesIO
from pathlib import Path

from tests.clients_suite import environments

PROJECT = Path(__file__).resolve().parent.parent
# The last one before turns had an author.
WITHOUT_AUTHORS = "5144b0dd^"


def checkout(folder: Path, revision: str) -> Path:
    """The code of this commit, in the new folder. Errors: RuntimeError where the history is not there."""
    done = subprocess.run(["git", "archive", revision], cwd=PROJECT, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"The history has no {revision}: fetch it whole.\n{done.stderr.decode()}")
    with tarfile.open(fileobj=BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def python(code: Path) -> str:
    """A Python with the libraries of this code; it is kept. Errors: subprocess.SubprocessError."""
    lock = (code / "requirements.lock").read_bytes()
    kept = environments.CACHE / "locks" / f"{hashlib.sha256(lock).hexdigest()[:12]}.lock"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(lock)
    return str(environments.python(f"version-{kept.stem}", ["--require-hashes", "-r", str(kept)]))
