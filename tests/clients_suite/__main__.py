"""`python -m tests.clients_suite`: run real clients against a hub, print a table; exit code 1: one does not work."""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.clients_suite import frameworks, table, upstream
from tests.clients_suite.environments import CACHE, bare, node, python
from tests.clients_suite.judge import Verdict, verdict
from tests.clients_suite.stage import Hub, hub_of
from tests.ports import free_port

CLIENTS = Path(__file__).with_name("clients").absolute()
FRAMEWORKS_PAGE = Path("docs/clients.md")
# `plain`: only the person is named. `said`: the application also says what they said, and names the conversation.
MODES = ("plain", "said")
CLIENT_SECONDS = 180.0
# Longer than the second within which nobody types an answer.
PAUSE_SECONDS = "1.3"


@dataclass(frozen=True)
class Client:
    """A conversation of `clients/`: NAME.json says what is installed, said and answered, NAME.* beside it has it."""

    name: str
    says: Mapping[str, Any]

    @property
    def modes(self) -> tuple[str, ...]:
        return tuple(self.says.get("modes", MODES))


def main() -> int:
    given = _arguments()
    # Whoever ends it ends its hub, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    adapters = {one: _adapter(one) for one in frameworks.FRAMEWORKS if not given.names or one in given.names}
    clients = [one for one in _clients() if not given.names or one.name in given.names]
    if given.names and not clients:
        return 0 if all(one.endswith("hold") for one in adapters.values()) else 1
    verdicts: list[Verdict] = []
    with (
        upstream.running(given.upstream_port or free_port()) as endpoint,
        hub_of(given.hub.absolute(), port=given.port or free_port(), upstream=endpoint.url) as hub,
    ):
        for client in clients:
            for mode in [one for one in client.modes if given.mode in {"both", one}]:
                verdicts.append(_run(client, mode, hub, endpoint))
                _say(table.line(verdicts[-1]))
                if given.log:
                    _log(given.log, verdicts[-1], endpoint.asked)
    page = table.table([(one.name, one.says) for one in clients], verdicts)
    _say(page)
    if given.write:
        table.write(given.write, page)
    if len(adapters) == len(frameworks.FRAMEWORKS):
        table.write(FRAMEWORKS_PAGE, frameworks.page(adapters), frameworks.BEGIN, frameworks.END)
    return 0 if table.all_work(verdicts) and all(one.endswith("hold") for one in adapters.values()) else 1


def _adapter(name: str) -> str:
    found = frameworks.tried(name)
    _say(f"{name}: {found}")
    return found


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.clients_suite", description=__doc__)
    parser.add_argument("names", nargs="*", help="of clients and of adapters for frameworks; all of them otherwise")
    parser.add_argument("--hub", type=Path, default=Path(), help="the checkout whose hub is tried (this one)")
    parser.add_argument("--mode", choices=[*MODES, "both"], default="both")
    parser.add_argument("--log", type=Path, help="folder for what each run asked the endpoint, and its verdict")
    parser.add_argument("--write", type=Path, help="page whose table is written again")
    parser.add_argument("--port", type=int, help="of the hub; a free one otherwise")
    parser.add_argument("--upstream-port", type=int, help="of the endpoint; a free one otherwise")
    return parser.parse_args()


def _clients() -> Iterator[Client]:
    for path in sorted(CLIENTS.glob("*.json")):
        yield Client(path.stem, json.loads(path.read_text("utf-8")))


def _run(client: Client, mode: str, hub: Hub, endpoint: upstream.Upstream) -> Verdict:
    """Install it, let it talk, ask the hub what it made of that."""
    user_id = f"{client.name}-{mode}-{uuid.uuid4().hex[:6]}"
    endpoint.begin(client.says["answers"])
    try:
        command, environ = _command(client)
        key = hub.key_of(user_id) if client.says.get("key") == "bound" else hub.key
        broke = _talk(command, {**environ, **_told(client, mode, hub, user_id), "SUITE_KEY": key})
    except (subprocess.SubprocessError, OSError) as error:
        broke = f"not installed: {type(error).__name__}"
    hub.rest(user_id)
    found = verdict(client.name, mode, hub, user_id, client.says["conversations"], endpoint.asked)
    found.broke = broke
    return found


def _command(client: Client) -> tuple[list[str], dict[str, str]]:
    """With what it runs, and which folder it finds its packages in. A conversation stands alone in its folder, beside
    what it is told: under its own name it would hide the package that it is about."""
    kind, packages = client.says["language"], client.says["packages"]
    folder = CACHE / client.name
    program = str(python(client.name, packages)) if kind == "python" else sys.executable
    suffix = "mjs" if kind == "javascript" else "py"
    if kind != "python":
        node(client.name, packages)
    for source, name in ((client.name, "conversation"), ("talk", "talk")):
        (folder / f"{name}.{suffix}").write_text((CLIENTS / f"{source}.{suffix}").read_text("utf-8"), encoding="utf-8")
    path = f"{folder / 'venv/bin'}:{folder / 'node_modules/.bin'}:{os.environ['PATH']}"
    return ["node" if suffix == "mjs" else program, str(folder / f"conversation.{suffix}")], {"PATH": path}


def _told(client: Client, mode: str, hub: Hub, user_id: str) -> dict[str, str]:
    return {
        "SUITE_URL": f"{hub.url}/v1",
        "SUITE_USER": user_id,
        "SUITE_MODE": mode,
        "SUITE_PAUSE": PAUSE_SECONDS,
        "SUITE_SAYS": json.dumps(client.says["conversations"]),
    }


def _talk(command: list[str], environ: Mapping[str, str]) -> str:
    """Why it did not come to its end; in a folder and a home of its own."""
    with tempfile.TemporaryDirectory(prefix="clients-suite-") as folder:
        own = bare(**{**environ, "HOME": folder, "PWD": folder, "XDG_CONFIG_HOME": f"{folder}/.config"})
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=own,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=CLIENT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"not ended after {CLIENT_SECONDS:.0f} seconds"
    return "" if done.returncode == 0 else (done.stderr or done.stdout)[-600:]


def _log(folder: Path, found: Verdict, asked: list[dict[str, Any]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"verdict": found.as_json(), "asked": asked}, indent=1, ensure_ascii=False)
    (folder / f"{found.client}-{found.mode}.json").write_text(text, encoding="utf-8")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
