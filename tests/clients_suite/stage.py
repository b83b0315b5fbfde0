"""The hub of the suite, of any checkout, with a home of its own; and what it says of a person."""

import json
import shutil
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.clients_suite.environments import bare

RUNNING = "Ctrl-C stops everything."
PATIENCE_SECONDS = 300.0
TENANT = "clients-suite"
# Of a session: nothing is to be extracted.
AT_REST = {"idle", "done"}
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
Json = dict[str, Any]


@dataclass(frozen=True)
class Hub:
    """Where it is, and a key for all of a tenant."""

    url: str
    key: str
    # Makes a key for one person.
    key_of: Callable[[str], str]

    def sessions(self, user_id: str) -> list[Json]:
        return self._rows(f"/sessions?user_id={urllib.parse.quote(user_id)}")

    def turns(self, session: Json) -> list[Json]:
        """Those that the conversation has now."""
        return [one for one in self._rows(f"/sessions/{session['id']}/turns?sort=number") if not one["left_at"]]

    def facts(self, user_id: str) -> list[Json]:
        """The ones that count, and those that wait for a decision."""
        who = urllib.parse.quote(user_id)
        return [one for status in ("active", "pending") for one in self._rows(f"/facts?user_id={who}&status={status}")]

    def memory(self, user_id: str, query: str) -> str:
        """What a prompt of another conversation would be told."""
        asked = {"user_id": user_id, "query": query, "max_tokens": 4000}
        return str(self._ask("/context", asked)["memory"])

    def rest(self, user_id: str) -> None:
        """Wait until everything that was said is extracted."""
        end = time.monotonic() + PATIENCE_SECONDS
        for session in self.sessions(user_id):
            names = {name: session[name] for name in ("session_id", "agent_id") if session[name]}
            self._ask("/sessions/end", {"user_id": user_id, **names})
        while not all(one["extraction"]["status"] in AT_REST for one in self.sessions(user_id)):
            if time.monotonic() > end:
                raise TimeoutError("the hub does not come to rest")
            time.sleep(0.3)

    def _rows(self, path: str) -> list[Json]:
        found = self._ask(f"{path}&page_size=100")
        rows: list[Json] = found["results"]
        return rows

    def _ask(self, path: str, body: Json | None = None) -> Json:
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/api/v1{path}", data=data, headers=headers)
        with _DIRECT.open(request, timeout=60) as answer:
            found: Json = json.load(answer)
        return found


@contextmanager
def hub_of(checkout: Path, *, port: int, upstream: str) -> Iterator[Hub]:
    """`manage.py up` of this checkout, without a model of its own; nothing of it is left."""
    folder = Path(tempfile.mkdtemp(prefix="clients-suite-"))
    # The account that runs the database for root has to pass through it.
    folder.chmod(0o711)
    environ = bare(
        MEMORYHUB_HOME=str(folder / "home"),
        MEMORYHUB_PORT=str(port),
        MEMORYHUB_LLM="rules",
        MEMORYHUB_DEBOUNCE_SECONDS="1",
        OPENAI_BASE_URL=upstream,
        OPENAI_API_KEY="suite",
    )
    command = [str(checkout / ".venv/bin/python"), "manage.py"]
    log = folder / "output.log"
    with log.open("wb") as file:
        process = subprocess.Popen([*command, "up"], cwd=checkout, env=environ, stdout=file, stderr=file)
    try:
        _wait_for(process, log)

        def made(*options: str) -> str:
            asked = [*command, "create_api_key", "--tenant", TENANT, *options]
            done = subprocess.run(asked, cwd=checkout, env=environ, check=True, capture_output=True, text=True)
            return done.stdout.split()[-1]

        key = made("--scopes", "ingest,read,write,privacy")
        yield Hub(f"http://127.0.0.1:{port}", key, lambda user_id: made("--scopes", "ingest,read", "--user", user_id))
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(process: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while RUNNING not in log.read_text("utf-8"):
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"the hub did not start:\n{log.read_text('utf-8')}")
        time.sleep(0.2)
