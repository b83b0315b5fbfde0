"""The hub of a soak: `manage.py up` on a disk and with a clock of its own, and the keys of those who use it."""

import json
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.soak.model import DIMENSIONS

DISK = "4g"
SOURCE = Path(__file__).with_name("clock.c")
TENANTS = {"alpha": "aa", "beta": "bb", "gamma": "cc"}
# Where people have a page of their own, and agents are given skills.
OWN_PAGES = SKILLED = "beta"
# Short, so that faults meet work at every moment.
SETTINGS = {
    "MEMORYHUB_DEBOUNCE_SECONDS": "2",
    "MEMORYHUB_MAX_WAIT_SECONDS": "6",
    "MEMORYHUB_LEASE_SECONDS": "8",
    # Of a session that nobody ends: the queue is not empty before.
    "MEMORYHUB_IDLE_SECONDS": "20",
    "MEMORYHUB_LLM_TIMEOUT": "7",
    "MEMORYHUB_LLM_CONCURRENCY": "2",
    "MEMORYHUB_EMBEDDINGS": "openai",
    "MEMORYHUB_EMBEDDING_MODEL": "soak",
    "MEMORYHUB_EMBEDDING_DIMENSIONS": str(DIMENSIONS),
    "MEMORYHUB_EMBEDDING_TIMEOUT": "5",
}


def choose(home: Path) -> None:
    """Make this process and its children users of this home alone, whatever hub the caller's environment names."""
    for name in list(os.environ):
        if name.startswith(("MEMORYHUB_", "OPENAI_")) or name == "DATABASE_URL":
            del os.environ[name]
    os.environ.update(MEMORYHUB_HOME=str(home), DJANGO_SETTINGS_MODULE="memoryhub.settings")


class Disk:
    """A file system in memory that can be full; only root can make one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(mode=0o711)
        self.is_own = os.geteuid() == 0 and self._mount("size=" + DISK, "tmpfs")

    def fill(self) -> None:
        """As large as what is on it."""
        for spare in (0, 64, 256, 1024):
            used = shutil.disk_usage(self.folder).used // 1024 + spare
            if self._mount(f"remount,size={used}k"):
                return
        raise OSError("the disk cannot be made smaller")

    def empty(self) -> None:
        self._mount(f"remount,size={DISK}")

    def end(self) -> None:
        if self.is_own:
            subprocess.run(["umount", "--lazy", str(self.folder)], check=False)

    def _mount(self, options: str, *kind: str) -> bool:
        command = ["mount", *(["-t", "tmpfs"] if kind else []), "-o", f"{options},mode=0711", *kind, str(self.folder)]
        return subprocess.run(command, check=False, capture_output=True).returncode == 0


class Clock:
    """The clock of web and workers, which can step; the database keeps the machine's. It wants a C compiler."""

    def __init__(self, folder: Path) -> None:
        self._library, self._file = folder / "clock.so", folder / "clock"
        self.step(0)
        compiler = shutil.which("cc")
        command = [compiler or "", "-shared", "-fPIC", "-o", str(self._library), str(SOURCE)]
        self.is_own = bool(compiler) and subprocess.run(command, check=False, capture_output=True).returncode == 0

    def step(self, seconds: int) -> None:
        """So far from the machine's clock, at once."""
        with self._file.open("r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("q", seconds))

    @property
    def environ(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self._library), "SOAK_CLOCK": str(self._file)} if self.is_own else {}


@dataclass(frozen=True)
class Keys:
    """A key of each tenant, one for the agent, and the operator's name and password."""

    tenants: dict[str, str]
    agent: str
    operator: dict[str, str]


def make_keys(home: Path, agent: tuple[str, str], taught: Sequence[str]) -> Keys:
    """Tenants and keys, made beside the running hub; `agent` is the tenant and the person of the agent's key, `taught`
    are the people whose trajectories taught a skill that is in use."""
    # Django is set up only when the hub runs.
    from django.db import connections

    from memories.curation.access.keys import Binding
    from tests import factories

    tenants = {slug: factories.tenant(slug=slug, person_page=slug == OWN_PAGES) for slug in TENANTS}
    keys = {slug: factories.api_key(tenant)[1] for slug, tenant in tenants.items()}
    slug, user = agent
    bound = factories.api_key(tenants[slug], binding=Binding(user, "", "user", ""))[1]
    factories.skill(*(factories.end_user(tenants[SKILLED], external_id=name) for name in taught))
    connections.close_all()
    return Keys(keys, bound, json.loads((home / "demo.json").read_text(encoding="utf-8")))


@dataclass(frozen=True)
class Stage:
    """Where the hub is to be, with what can be done to it."""

    home: Path
    disk: Disk
    clock: Clock


@contextmanager
def opened() -> Iterator[Stage]:
    """In a folder with a short path, which the account that runs the database can reach; nothing of it is left."""
    folder = Path(tempfile.mkdtemp(prefix="mh-soak-"))
    folder.chmod(0o711)
    disk = Disk(folder / "disk")
    try:
        yield Stage(folder / "disk" / "home", disk, Clock(folder))
    finally:
        disk.end()
        shutil.rmtree(folder, ignore_errors=True)
