"""Environments with the pinned packages of a client: a virtual environment or an npm folder below `.clients-suite/`."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

CACHE = Path(".clients-suite").absolute()
INSTALL_SECONDS = 600


def python(name: str, packages: Sequence[str], *, version: str = "") -> Path:
    """The interpreter with these packages, of this process's Python or of the one with this version on the PATH.

    Errors: FileNotFoundError where there is none, subprocess.SubprocessError.
    """
    folder = CACHE / name
    program = folder / "venv/bin/python"
    if not _is_made(folder, packages):
        own = f"python{version}" if version else sys.executable
        _call([own, "-m", "venv", "--without-pip", str(folder / "venv")], folder)
        pip = [sys.executable, "-m", "pip", "--python", str(program), "install", "--quiet", "--only-binary", ":all:"]
        _call([*pip, *packages], folder)
        _note(folder, packages)
    return program


def node(name: str, packages: Sequence[str]) -> Path:
    """The folder with these packages in node_modules."""
    folder = CACHE / name
    if not _is_made(folder, packages):
        (folder / "package.json").write_text(json.dumps({"private": True, "type": "module"}), encoding="utf-8")
        _call(["npm", "install", "--no-audit", "--no-fund", "--silent", *packages], folder)
        _note(folder, packages)
    return folder


def _is_made(folder: Path, packages: Sequence[str]) -> bool:
    """Whether it is there with just these; otherwise an empty folder is."""
    noted = folder / "packages.json"
    if noted.is_file() and json.loads(noted.read_text("utf-8")) == list(packages):
        return True
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return False


def _note(folder: Path, packages: Sequence[str]) -> None:
    (folder / "packages.json").write_text(json.dumps(list(packages)), encoding="utf-8")


def _call(command: Sequence[str], folder: Path) -> None:
    with (folder / "install.log").open("ab") as log:
        subprocess.run(command, cwd=folder, check=True, stdout=log, stderr=log, timeout=INSTALL_SECONDS)


def bare(**own: str) -> Mapping[str, str]:
    """The caller's environment without what would lead a client or a hub elsewhere."""
    foreign = ("MEMORYHUB_", "OPENAI_", "ANTHROPIC_", "DATABASE_URL", "PYTHONPATH", "VIRTUAL_ENV")
    return {**{name: value for name, value in os.environ.items() if not name.startswith(foreign)}, **own}
