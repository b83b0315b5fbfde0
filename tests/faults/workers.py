"""Real workers: `manage.py worker` as processes on the test's own database."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import psutil
from django.conf import settings
from django.db import connection

from memories.models import WorkerHeartbeat
from tests.commands.hub import pause_after
from tests.database import runtime_role
from tests.settings import ROW_SECURITY

PATIENCE = 300.0


class Worker:
    """The command; under it the process that keeps the cluster, django-q's sentinel, and under that the pool."""

    def __init__(self, environ: Mapping[str, str], log: Path) -> None:
        self.log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "worker"],
                cwd=settings.BASE_DIR,
                env={**os.environ, "DJANGO_SETTINGS_MODULE": "memoryhub.settings", **environ},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def keeper(self) -> int:
        return children(self.process.pid)[0]

    @property
    def sentinel(self) -> int:
        return children(self.keeper)[0]

    def kill(self) -> None:
        """The command, and what keeps the cluster; the rest must notice."""
        keeper = self.keeper
        self.process.kill()
        self.process.wait()
        # It may have followed already.
        with suppress(ProcessLookupError):
            os.kill(keeper, signal.SIGKILL)


@contextmanager
def running(*environs: Mapping[str, str], folder: Path, beside: int = 0) -> Iterator[list[Worker]]:
    """Workers with these variables, given once each of them has shown that it lives (`beside` others do already);
    all are ended."""
    common = {
        "DATABASE_URL": database_url(),
        "MEMORYHUB_HOME": str(folder),
        "MEMORYHUB_SECRET_KEY": settings.SECRET_KEY,
        # As in the test itself, and loaded at once.
        "MEMORYHUB_EMBEDDINGS": settings.MEMORYHUB_EMBEDDINGS,
    }
    workers = [Worker({**common, **environ}, folder / f"{place}.log") for place, environ in enumerate(environs)]
    try:
        wait_until(lambda: WorkerHeartbeat.objects.filter(kind="cluster").count() == len(workers) + beside)
        yield workers
    finally:
        for worker in workers:
            worker.process.terminate()
        for worker in workers:
            worker.process.wait(PATIENCE)


def database_url() -> str:
    """The test's database as DATABASE_URL: behind row level security for web and worker's role, else for the owner."""
    own: dict[str, Any] = connection.settings_dict
    user, password = (own["USER"], own["PASSWORD"]) if ROW_SECURITY == "off" else runtime_role()
    return as_url(user=user, password=password, dbname=own["NAME"], host=own["HOST"], port=own["PORT"])


def as_url(*, user: str, password: str, dbname: str, host: str, port: str) -> str:
    """How libpq names a server by its socket, as DATABASE_URL."""
    return f"postgresql://{quote(user)}:{quote(password)}@/{dbname}?{urlencode({'host': host, 'port': port})}"


def children(parent: int) -> list[int]:
    """Process ids of the direct children but the embedder, the first one made first, on Linux and macOS alike."""
    try:
        found = [one.pid for one in psutil.Process(parent).children() if "embedder" not in words_of(one)]
    except psutil.NoSuchProcess:
        return []
    # Numbers begin anew after the largest: a later child may have a smaller one.
    return sorted(found, key=lambda pid: (pid - parent) % _largest_process_number())


def processes() -> Iterator[tuple[int, int, list[str]]]:
    """Of each process its id, its parent's and the words of its command line."""
    for one in psutil.process_iter():
        with suppress(psutil.Error):
            yield one.pid, one.ppid(), words_of(one)


def words_of(process: psutil.Process) -> list[str]:
    """The words of its command line; none of one that has ended."""
    try:
        return [word for argument in process.cmdline() for word in argument.split()]
    except psutil.Error:
        return []


@cache
def _largest_process_number() -> int:
    path = Path("/proc/sys/kernel/pid_max")
    return int(path.read_text()) if path.exists() else 99_999


def wait_until(is_so: Callable[[], bool], *, within: float = PATIENCE) -> float:
    """Wait until it is so; returns the seconds that it took. AssertionError when it takes too long."""
    begun = time.monotonic()
    while not is_so():
        waited = time.monotonic() - begun
        assert waited < within, "waited in vain"
        time.sleep(pause_after(waited))
    return time.monotonic() - begun
