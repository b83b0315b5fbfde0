"""`manage.py up` runs the whole hub, survives the death of its parts, and leaves nothing behind."""

import http.client
import json
import os
import re
import shlex
import shutil
import signal
import socket
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from io import StringIO
from pathlib import Path

import pytest
from pytest_django import Settings

from memories.management.commands.up import Command, greeting
from memories.management.demo import DemoAccess
from memories.models import Operator
from memoryhub.embedded_postgres.place import locate
from tests.commands.hub import PATIENCE_SECONDS, RUNNING, Hub, wait_until
from tests.faults.workers import processes
from tests.scratch import connect, scratch_folder


def status(hub: Hub, path: str) -> int:
    client = http.client.HTTPConnection("127.0.0.1", hub.port, timeout=10)
    try:
        client.request("GET", path)
        return client.getresponse().status
    finally:
        client.close()


def answers(hub: Hub, expected: int) -> bool:
    """Whether /readyz answers with this status; not while nobody answers, as on a busy machine for a while."""
    try:
        return status(hub, "/readyz") == expected
    except (OSError, http.client.HTTPException):
        return False


@pytest.fixture(scope="module")
def running(own_hub: Hub) -> Iterator[Hub]:
    """Started in an empty home, so that all is made and the demo is seeded."""
    own_hub.end()
    shutil.rmtree(own_hub.home)
    own_hub.run("up")
    own_hub.wait_for(RUNNING)
    yield own_hub
    own_hub.end()


def test_what_it_prints_works(running: Hub) -> None:
    demo = json.loads((running.home / "demo.json").read_text())
    assert f"http://127.0.0.1:{running.port}/admin/" in running.text
    assert f"{demo['username']} / {demo['password']}" in running.text
    assert "No language model configured" in running.text
    assert "<memory>" in running.paste_curl()["memory"]
    wait_until(lambda: answers(running, 200))


def test_web_and_worker_are_nobody_in_the_database(running: Hub) -> None:
    """What stood open: they were its superuser."""
    wait_until(lambda: answers(running, 200))
    # One that is just signing in has no name yet.
    others = "FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND usename <> ''"
    with connect(running.home) as connection:
        assert connection.execute(f"SELECT DISTINCT usename {others}").fetchall() == [("memoryhub_runtime",)]
        # Web, the cluster's pusher and pulse, the embedder.
        assert len(connection.execute(f"SELECT pid {others}").fetchall()) >= 4


@pytest.mark.skipif(sys.platform != "linux", reason="forks, and /proc, are of Linux")
def test_its_processes_share_what_they_loaded(running: Hub) -> None:
    """What stood open: 1,350 MB, when each loaded its own. 550 are used; a process more of its own has 100 at least."""
    wait_until(lambda: answers(running, 200))
    words = {pid: (above, shown) for pid, above, shown in processes()}
    hub = [running.process.pid]
    for pid in hub:
        hub += [child for child, (above, _) in words.items() if above == pid]
    titles = Counter(" ".join(words[pid][1]) for pid in hub if "postgres" not in " ".join(words[pid][1]))
    assert {"memoryhub web", "memoryhub worker", "memoryhub embedder"} <= set(titles)
    assert titles["memoryhub web"] >= 3
    assert sum(map(proportional, hub)) < 650
    # The library of a model's endpoint, which this hub does not have; the control is that of the vectors.
    loaded = Path(f"/proc/{running.process.pid}/maps").read_text(encoding="utf-8")
    assert "/jiter/" not in loaded
    assert "/numpy/" in loaded


def shown(pid: int) -> str:
    return next((" ".join(words) for number, _, words in processes() if number == pid), "")


def proportional(pid: int) -> float:
    """Megabytes of a process, with its share of what it shares; none of one that has ended meanwhile."""
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
    except OSError:
        return 0.0
    return int(re.findall(r"^Pss: +(\d+) kB", rollup, re.MULTILINE)[0]) / 1024


@pytest.mark.parametrize("child", ["worker", "web", "embedder"])
def test_a_part_that_dies_is_started_again(running: Hub, child: str) -> None:
    before = running.pid(child)
    os.kill(before, signal.SIGKILL)
    running.wait_for(f"{child} ended with signal 9")
    running.wait_for(f"{child} started", times=2)
    assert running.pid(child) != before
    if sys.platform == "linux":
        # A fork, which has nothing to load; a program would show its command line.
        wait_until(lambda: shown(running.pid(child)) == f"memoryhub {child}")
    wait_until(lambda: answers(running, 200))


def test_a_database_that_dies_is_started_again(running: Hub) -> None:
    data = locate(running.home).data
    os.kill(int((data / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
    wait_until(lambda: answers(running, 503))
    wait_until(lambda: answers(running, 200))


def test_killed_its_children_go_and_the_next_start_has_everything(running: Hub) -> None:
    with connect(running.home) as connection:
        connection.execute("CREATE TABLE kept AS SELECT '记住' AS word")
    running.process.kill()
    running.process.wait()
    wait_until(running.is_gone)
    running.run("up")
    running.wait_for(RUNNING)
    demo = json.loads((running.home / "demo.json").read_text())
    assert f"sign-in and key are in {running.home / 'demo.json'}" in running.text
    assert not any(secret in running.text for secret in (demo["password"], demo["api_key"]))
    with connect(running.home) as connection:
        assert connection.execute("SELECT word FROM kept").fetchall() == [("记住",)]
        connection.execute("DROP TABLE kept")


def test_ctrl_c_ends_all_of_it(running: Hub) -> None:
    running.process.send_signal(signal.SIGINT)
    assert running.process.wait(timeout=PATIENCE_SECONDS) == 0
    assert "Memory Hub has stopped." in running.text
    assert running.is_gone()


def test_a_port_in_use_ends_it_before_anything_starts(stopped: Hub) -> None:
    with socket.create_server(("127.0.0.1", stopped.port)):
        assert stopped.run("up").wait(timeout=PATIENCE_SECONDS) == 2
    assert f"Port {stopped.port} is in use" in stopped.text
    assert "MEMORYHUB_PORT" in stopped.text
    assert "Preparing" not in stopped.text


def test_a_database_that_does_not_answer_is_named(stopped: Hub) -> None:
    process = stopped.run("up", DATABASE_URL="postgresql://nobody@127.0.0.1:9/nothing")
    assert process.wait(timeout=PATIENCE_SECONDS) == 1
    assert "The database cannot be used" in stopped.text
    assert "Traceback" not in stopped.text


@pytest.fixture
def told(settings: Settings) -> Iterator[Settings]:
    settings.HOME = scratch_folder()
    settings.PUBLIC_URL = "https://hub.example"
    yield settings
    shutil.rmtree(settings.HOME)


def test_a_configured_model_is_not_called_missing(told: Settings) -> None:
    told.MEMORYHUB_LLM = ""
    assert "No language model configured" in greeting()
    assert "Simple rules make facts of requests to remember, wishes and plain statements." in greeting()
    told.OPENAI_BASE_URL = "http://127.0.0.1:9/v1"
    assert "No language model configured" not in greeting()


def test_switched_off_it_promises_no_suggestions(told: Settings) -> None:
    told.MEMORYHUB_LLM = "off"
    assert "No language model configured: messages are kept as written." in greeting()
    assert "imple rules" not in greeting()


def test_a_database_without_the_demo_gets_no_demo_lines(told: Settings) -> None:
    assert "create_api_key" in greeting()
    seeded = DemoAccess(username="demo", password="it's", api_key="mh_a_b", user_id="林's")
    line = next(line for line in greeting(seeded).splitlines() if line.startswith("curl "))
    words = shlex.split(line)
    assert "https://hub.example/api/v1/context" in words
    assert json.loads(words[-1]) == {"user_id": "林's"}
    assert "create_api_key" not in greeting(seeded)
    # From the next start on.
    (told.HOME / "demo.json").write_text(json.dumps(asdict(seeded)), encoding="utf-8")
    assert str(told.HOME / "demo.json") in greeting()
    assert not any(word in greeting() for word in ("create_api_key", "it's", "mh_a_b", "curl"))


@pytest.mark.django_db(transaction=True)
def test_where_others_get_in_there_is_no_demo(told: Settings) -> None:
    for host in ("hub.example", "10.0.0.7", "127.0.0.1.example.com"):
        told.PUBLIC_HOST = host
        assert Command(stdout=StringIO())._prepare() is None, host
    assert not Operator.objects.exists()
    assert not (told.HOME / "demo.json").exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_where_nobody_else_gets_in_there_is_one(told: Settings, host: str) -> None:
    told.PUBLIC_HOST = host
    seeded = Command(stdout=StringIO())._prepare()
    assert seeded
    assert json.loads((told.HOME / "demo.json").read_text()) == asdict(seeded)
    assert Command(stdout=StringIO())._prepare() is None
