"""A hub on a cluster's database: its commands, web and worker as processes, and calls of its API."""

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.distributed.cluster import DATABASE, Cluster
from tests.ports import free_port

PROJECT = Path(__file__).resolve().parent.parent.parent
RUNTIME = "memoryhub_runtime"
PATIENCE_SECONDS = 900.0
LOG_LINES = 40
SCOPES = "ingest,read,write,privacy"


class Answer(NamedTuple):
    status: int
    body: Any
    retry_after: str = ""


class Hub:
    """Web and worker on a cluster's database, of this checkout or another one."""

    def __init__(
        self,
        cluster: Cluster,
        folder: Path,
        *,
        project: Path = PROJECT,
        python: str = sys.executable,
        database: str = DATABASE,
        **environ: str,
    ) -> None:
        self.cluster, self.port = cluster, free_port()
        self.folder, self._project, self._python = folder, project, python
        coordinator = cluster.nodes[0]
        self._environ = {name: value for name, value in os.environ.items() if not name.startswith("MEMORYHUB_")} | {
            "DATABASE_URL": coordinator.url(database, user=RUNTIME),
            "MEMORYHUB_OWNER_URL": coordinator.url(database),
            "MEMORYHUB_DISTRIBUTED": "1",
            "DJANGO_SETTINGS_MODULE": "memoryhub.settings",
            "MEMORYHUB_HOME": str(folder / "home"),
            "MEMORYHUB_PORT": str(self.port),
            "MEMORYHUB_LLM": "rules",
            "MEMORYHUB_DEBOUNCE_SECONDS": "1",
            **environ,
        }

    def manage(self, *arguments: str) -> str:
        """What the command prints. Errors: SystemExit."""
        return self.run("manage.py", *arguments)

    def run(self, *arguments: str) -> str:
        """What this Python program prints. Errors: SystemExit."""
        done = self._run(*arguments)
        if done.returncode:
            raise SystemExit(f"{' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def refused(self, *arguments: str) -> str:
        """Why the command does not do it. Errors: SystemExit when it does."""
        done = self._run("manage.py", *arguments)
        if not done.returncode:
            raise SystemExit(f"manage.py {' '.join(arguments)} did not fail:\n{done.stdout}")
        return done.stderr.strip()

    def _run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [self._python, *arguments],
            cwd=self._project,
            env=self._environ,
            capture_output=True,
            text=True,
            check=False,
        )

    @contextmanager
    def serving(self, *commands: str) -> Iterator[None]:
        """These commands of manage.py run; web answers. The ends of their logs are printed where the block fails."""
        with ExitStack() as stack:
            stack.push(self._show_logs)
            for command in commands:
                log = stack.enter_context((self.folder / f"{command}.log").open("a"))
                process = subprocess.Popen(
                    [self._python, "manage.py", command],
                    cwd=self._project,
                    env=self._environ,
                    stdout=log,
                    stderr=log,
                )
                stack.callback(process.wait)
                stack.callback(process.terminate)
            wait_until(self._answers)
            yield

    def _show_logs(self, failure: Any, *_: Any) -> None:
        for log in sorted(self.folder.glob("*.log")) if failure else ():
            lines = log.read_text().splitlines()[-LOG_LINES:]
            sys.stdout.write("\n".join([f"     {log.name}:", *lines, ""]))

    def key(self, tenant: str) -> str:
        return self.manage("create_api_key", "--tenant", tenant, "--scopes", SCOPES).strip()

    def call(self, key: str, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Errors: OSError, HTTPException."""
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            content = None if body is None else json.dumps(body)
            all_headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", **headers}
            client.request(method, f"/api/v1{path}", content, all_headers)
            answer = client.getresponse()
            text = answer.read()
            return Answer(answer.status, json.loads(text) if text else None, answer.headers.get("Retry-After", ""))
        finally:
            client.close()

    def _answers(self) -> bool:
        try:
            return self.call("none", "GET", "/users").status == 401
        except (OSError, http.client.HTTPException):
            return False


def wait_until(condition: Callable[[], Any], *, seconds: float = PATIENCE_SECONDS) -> Any:
    """What it returns that is true. Errors: SystemExit."""
    begun = time.monotonic()
    while not (found := condition()):
        waited = time.monotonic() - begun
        if waited > seconds:
            raise SystemExit(f"Waited {seconds:.0f} s in vain: {condition}")
        # Asking takes from a busy machine what the answer needs.
        time.sleep(min(2.0, max(0.2, waited / 20)))
    return found


def check(what: str, holds: Any, shown: Any = "") -> None:
    """Say whether it holds. Errors: SystemExit."""
    sys.stdout.write(f"{'ok  ' if holds else 'FAIL'} {what} {shown}\n")
    sys.stdout.flush()
    if not holds:
        raise SystemExit(1)


def prepared(hub: Hub) -> Hub:
    """The same, with its tables distributed."""
    hub.manage("migrate", "--verbosity", "0")
    check("tables:", placed := hub.manage("distribute").strip(), placed)
    return hub
