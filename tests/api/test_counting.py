"""What processes count for /metrics: all together, killed ones too; by patterns, and never by what a client said."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from prometheus_client import values
from prometheus_client.parser import text_string_to_metric_families

from memories.telemetry import families, slots
from tests import factories
from tests.api.conftest import Hub

COUNT = """
import os, signal, sys
from django.conf import settings
settings.configure(HOME=sys.argv[1])
from memories.telemetry import families, slots
families.note_request("api/v1/context", "POST", 200, 0.02)
families.CONTEXT_TOKENS.observe(120)
print(slots.own.name(), flush=True)
sys.stdin.readline()
os.kill(os.getpid(), signal.SIGKILL)
"""


class Counting:
    """A process that has counted one request, and is killed."""

    def __init__(self, home: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", COUNT, str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout
        self.slot = self.process.stdout.readline().strip()

    def kill(self) -> None:
        self.process.communicate("\n", timeout=300)
        assert self.process.returncode == -signal.SIGKILL


@pytest.fixture
def home(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home in which nobody has counted."""
    monkeypatch.setattr(slots, "own", slots.Slot())
    settings.HOME = tmp_path
    # What was counted before goes on in the files of before, once this test is over.
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    monkeypatch.setattr(values, "ValueClass", values.ValueClass)
    for family in families.Family.all:
        monkeypatch.setattr(family, "_metric", None)
        monkeypatch.setattr(family, "_series", {})
    families._count_in_slots.cache_clear()
    return tmp_path


def sums() -> dict[tuple[str, ...], float]:
    return {(one.name, *one.labels.values()): one.value for family in families.collect() for one in family.samples}


POSTED = ("memoryhub_requests_total", "POST", "api/v1/context", "2xx")


def requests(samples: dict[tuple[str, ...], float]) -> float:
    return sum(
        value for name, value in samples.items() if name[0] == POSTED[0] and sorted(name[1:]) == sorted(POSTED[1:])
    )


def test_the_sums_of_processes_stay_when_these_are_killed(home: Path) -> None:
    first, second = Counting(home), Counting(home)
    assert (first.slot, second.slot) == ("0", "1")
    assert requests(sums()) == 2
    first.kill()
    assert requests(sums()) == 2
    # The next one goes on where the killed one was: no more files than processes at once.
    third = Counting(home)
    assert third.slot == "0"
    after = sums()
    assert requests(after) == 3
    assert after["memoryhub_context_tokens_bucket", "250.0"] == 3
    assert after["memoryhub_context_tokens_count",] == 3
    assert sorted(path.name for path in (home / "metrics").glob("counter*")) == ["counter_0.db", "counter_1.db"]
    # While somebody counts, nothing is removed.
    slots.sweep()
    assert requests(sums()) == 3
    for one in (second, third):
        one.kill()
    slots.sweep()
    assert requests(sums()) == 0
    assert list((home / "metrics").glob("*.db")) == []


def test_what_cannot_be_read_is_left_out(home: Path) -> None:
    one = Counting(home)
    one.kill()
    for name in ("counter_8.db", "histogram_9.db"):
        (home / "metrics" / name).write_bytes(b"\x40\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\x7f torn")
    (home / "metrics/counter_7.db").write_bytes(b"")
    assert requests(sums()) == 1


def test_without_a_folder_nothing_is_counted_and_nothing_fails(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    (home / "metrics").write_text("not a folder")
    families.note_request("api/v1/context", "POST", 200, 0.02)
    families.note_request("api/v1/context", "POST", 200, 0.02)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert requests(sums()) == 0


def test_all_series_fit_without_growing(home: Path) -> None:
    """A file that grows on a full disk kills its process."""
    from memories.api.counting import expect_operations

    expect_operations()
    counted = [zero for family in families.Family.all for _, zero in family.at_zero(())]
    assert len(counted) > 300
    room = dict.fromkeys(slots.SIZES, 0)
    for family in counted:
        # An entry is its key as JSON, the help among it, and 24 bytes.
        room[family.type] += sum(
            len(one.name) + len(family.name) + len(family.documentation) + len(str(one.labels)) + 48
            for one in family.samples
        )
    # What has no known labels needs some room, too.
    assert {kind: size < 0.8 * slots.SIZES[kind] for kind, size in room.items()} == dict.fromkeys(slots.SIZES, True)


def test_requests_are_counted_by_pattern(home: Path, hub: Hub, django_capture_on_commit_callbacks: Any) -> None:
    def told() -> dict[tuple[str, ...], float]:
        text = Client().get("/metrics").content.decode()
        assert "secret-path" not in text
        samples = [one for family in text_string_to_metric_families(text) for one in family.samples]
        return {(one.name, *sorted(one.labels.values())): one.value for one in samples}

    before = told()
    assert before["memoryhub_requests_total", "2xx", "POST", "api/v1/turns"] == 0
    assert before["memoryhub_request_seconds_count", "api/v1/facts/<uuid:fact_id>"] == 0
    assert before["memoryhub_turns_total", "stored"] == 0
    person = factories.end_user(hub.tenant)
    message = {"role": "user", "content": "I live in Leiden."}
    about = {"user_id": person.external_id}
    body = about | {"session_id": "s", "messages": [message]}
    with django_capture_on_commit_callbacks(execute=True):
        assert hub.client.post("/turns", body).status_code == 202
    assert hub.client.post("/context", about).status_code == 200
    assert hub.client.post("/search", about | {"query": "Leiden"}).status_code == 200
    for path in (f"/facts/{person.pk}", "/secret-path"):
        assert hub.client.get(path).status_code == 404
    for path in ("/secret-path/x", "/admin/login/"):
        Client().get(path)
    Client().generic("SECRET-PATH", "/healthz")
    after = told()
    grown = {name: value - before.get(name, 0) for name, value in after.items() if value != before.get(name, 0)}
    assert grown["memoryhub_requests_total", "2xx", "POST", "api/v1/turns"] == 1
    assert grown["memoryhub_requests_total", "4xx", "GET", "api/v1/facts/<uuid:fact_id>"] == 1
    assert grown["memoryhub_requests_total", "4xx", "GET", "unknown"] == 2
    assert grown["memoryhub_requests_total", "2xx", "GET", "admin"] == 1
    assert grown["memoryhub_requests_total", "4xx", "healthz", "other"] == 1
    assert grown["memoryhub_request_seconds_count", "api/v1/search"] == 1
    assert grown["memoryhub_turns_total", "stored"] == 1
    assert grown["memoryhub_context_seconds_count",] == grown["memoryhub_search_seconds_count",] == 1
