"""`python -m tests.import_suite`: let the peers' own packages make stores, import these, and account for every row.

Each peer has an environment of its own with pinned packages, as the clients of tests/clients_suite have. What it made,
and what is to become of it, its script says itself (`peers/`). Exit code 1: a row is not accounted for.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import django
import psycopg
from django.core.management import CommandError, call_command
from psycopg.conninfo import make_conninfo

from memoryhub import embedded_postgres
from tests.clients_suite import environments, table

PEERS = Path(__file__).with_name("peers").absolute()
PEER_SECONDS = 300.0
TENANT = "import-suite"
SETTINGS = "memoryhub.settings"
PAGE, BEGIN, END = "docs/imports.md", "<!-- peers: begin -->", "<!-- peers: end -->"
HEAD = "| made by | version | store | rows | stored | left out | |\n| --- | --- | --- | --- | --- | --- | --- |"
_STORED = re.compile(r"(\d[\d,]*) (?:facts? and|messages? stored|stored)\b")
_REASON = re.compile(r"(\d[\d,]*) (left out|refused): (.*)")


@dataclass
class Verdict:
    """What became of a store: `rows` that are in it, how many were stored, and the others by reason."""

    store: str
    rows: int = 0
    stored: int = 0
    others: Counter[str] = field(default_factory=Counter)
    fault: str = ""


@dataclass(frozen=True)
class Hub:
    """The database of a hub, which this process uses, and the address of another one for what a peer keeps there."""

    dsn: str

    def run(self, *command: str) -> str:
        """What the command says, also why it ended."""
        said = StringIO()
        try:
            call_command(*command, stdout=said, stderr=said)
        except CommandError as error:
            said.write(f"{error}\n")
        return said.getvalue()


def main() -> int:
    given = _arguments()
    rows: list[str] = []
    are_right = True
    with _hub() as hub:
        for path in sorted(PEERS.glob("*.json")):
            if given.names and path.stem not in given.names:
                continue
            says = json.loads(path.read_text("utf-8"))
            for place, verdict in enumerate(_verdicts(path.stem, says, hub)):
                rows.append(_row(says, verdict, is_first=not place))
                are_right &= not verdict.fault
                _say(f"{rows[-1]} {verdict.fault}")
    if given.write:
        table.write(Path(PAGE), "\n".join([HEAD, *rows]), BEGIN, END)
    return 0 if are_right else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.import_suite", description=__doc__)
    parser.add_argument("names", nargs="*", help="of peers; all of them otherwise")
    parser.add_argument("--write", action="store_true", help=f"write the table of {PAGE} again")
    return parser.parse_args()


@contextmanager
def _hub() -> Iterator[Hub]:
    folder = Path(tempfile.mkdtemp(prefix="import-suite-"))
    # The account that runs the database for root has to pass through it.
    folder.chmod(0o711)
    home = folder / "home"
    environ = environments.bare(MEMORYHUB_HOME=str(home), MEMORYHUB_LLM="off", DJANGO_SETTINGS_MODULE=SETTINGS)
    os.environ.clear()
    os.environ.update(environ)
    try:
        with embedded_postgres.attached(home, fast=True):
            django.setup()
            hub = Hub(_database(embedded_postgres.connection(home)))
            hub.run("migrate", "--verbosity", "0")
            hub.run("create_api_key", "--tenant", TENANT, "--scopes", "read")
            yield hub
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _database(own: Mapping[str, str]) -> str:
    """The address of an empty database beside that of the hub."""
    with psycopg.connect(make_conninfo(**own), autocommit=True) as connection:
        connection.execute("CREATE DATABASE peers")
    other = {**own, "dbname": "peers"}
    with psycopg.connect(make_conninfo(**other), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    names = {"host": "host", "port": "port", "user": "user", "password": "password"}
    return "postgresql:///peers?" + "&".join(f"{name}={other[key]}" for name, key in names.items())


def _verdicts(name: str, says: Mapping[str, Any], hub: Hub) -> Iterator[Verdict]:
    if "why_not" in says:
        yield Verdict("–", fault="")
        return
    folder = Path(tempfile.mkdtemp(prefix=f"import-suite-{name}-"))
    try:
        told = _told(name, says, hub, folder)
        for run in told["runs"]:
            yield _imported(name, run, hub)
        if form := says.get("form"):
            yield _read_back(name, says, form, hub, folder)
    except (subprocess.SubprocessError, OSError, ValueError, KeyError) as error:
        yield Verdict("–", fault=f"{type(error).__name__}: {error}"[:600])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _told(name: str, says: Mapping[str, Any], hub: Hub, folder: Path, **more: str) -> dict[str, Any]:
    """What the peer's script says of the stores that it made. Errors: SubprocessError, OSError, ValueError."""
    program = environments.python(f"import-{name}", says["packages"], version=says.get("python", ""))
    # Under its own name it would hide the package that it is about.
    script = environments.CACHE / f"import-{name}" / "store.py"
    script.write_text((PEERS / f"{name}.py").read_text("utf-8"), encoding="utf-8")
    own = {"SUITE_FOLDER": str(folder), "SUITE_DSN": hub.dsn, "HOME": str(folder), **more}
    path = f"{program.parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [str(program), str(script)],
        cwd=folder,
        env=environments.bare(**own, PATH=path),
        capture_output=True,
        text=True,
        timeout=PEER_SECONDS,
        check=False,
    )
    if done.returncode:
        raise ValueError(done.stderr[-500:])
    told: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return told


def _imported(name: str, run: Mapping[str, Any], hub: Hub) -> Verdict:
    """Try it, import it, and import it once more: every row is stored or has a reason, and a second time none is."""
    tenant = f"{TENANT}-{name}-{re.sub('[^a-z]+', '-', run['store'].lower())}".strip("-")[:50]
    hub.run("create_api_key", "--tenant", tenant, "--scopes", "read")
    source = ["--from", run["source"]] if run.get("source") else []
    command = ["import_memories", run["given"], "--tenant", tenant, *source, *run.get("options", [])]
    would, said, again = hub.run(*command, "--dry-run"), hub.run(*command), hub.run(*command)
    stored, others = _counted(said)
    found = Verdict(run["store"], run["rows"], stored, others)
    expected = Counter({"stored": run["stored"], **run.get("left_out", {})})
    if +Counter({"stored": stored, **others}) != +expected or expected.total() != run["rows"]:
        found.fault = f"expected {dict(expected)} of {run['rows']}; the hub said: {said}"
    elif _counted(would.replace("would be stored", "stored")) != (stored, others):
        found.fault = f"a dry run said: {would}"
    elif _counted(again)[0]:
        found.fault = f"a second run said: {again}"
    return found


def _read_back(name: str, says: Mapping[str, Any], form: str, hub: Hub, folder: Path) -> Verdict:
    """What the hub exports in the peer's form, the peer's own package reads."""
    path = folder / "back.json"
    tenant = f"{TENANT}-back-{form}"
    hub.run("create_api_key", "--tenant", tenant, "--scopes", "read")
    facts = folder / "facts.jsonl"
    texts = ["Bakes bread on Sundays", "张三住在杭州", 'Says "hm" – often', "Has a boat\nin Delft"]
    lines = (json.dumps({"text": text, "user_id": "mara.b@example.org", "id": text}) for text in texts)
    facts.write_text("\n".join(lines), encoding="utf-8")
    hub.run("import_memories", str(facts), "--tenant", tenant)
    hub.run("export_user", "--tenant", tenant, "--user", "mara.b@example.org", "--as", form, "--to", str(path))
    told = _told(name, says, hub, folder, SUITE_BACK=str(path), SUITE_USER="mara.b@example.org")
    found = Verdict(f"`export_user --as {form}`, read by it", len(texts), len(told["back"]))
    found.fault = "" if told["back"] == sorted(texts) else f"it read {told['back']}"
    return found


def _counted(said: str) -> tuple[int, Counter[str]]:
    """How many rows were stored; the others by reason."""
    others = Counter({found[2]: _number(found[0]) for found in _REASON.findall(said)})
    first = [line for line in said.splitlines() if not _REASON.match(line) and "left out" not in line]
    numbers = [_number(one) for line in first for one in _STORED.findall(line)]
    return sum(numbers), +others


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def _row(says: Mapping[str, Any], found: Verdict, *, is_first: bool) -> str:
    """A line of the table; what is to be said of the peer stands in its first one."""
    if "why_not" in says:
        return f"| {says['title']} | {says['version']} | – | – | – | – | not run: {says['why_not']} |"
    others = ", ".join(f"{count} `{reason}`" for reason, count in sorted(found.others.items())) or "–"
    failed = "did not run" if found.store == "–" else "FAILS"
    word = failed if found.fault else says.get("remarks", "") if is_first else ""
    cells: Sequence[Any] = (says["title"], says["version"], found.store, found.rows, found.stored, others, word)
    return f"| {' | '.join(map(str, cells))} |"


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
