"""The alerts in deploy/: they name families that exist, each has a runbook, and `make alerts` causes each of them."""

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings
from django.db import OperationalError, transaction
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from memories.api import metrics
from memories.models import (
    Backup,
    DailySpending,
    DecayPass,
    EndpointState,
    LanguageModel,
    SessionQueue,
    WorkerHeartbeat,
)
from memories.telemetry import families
from tests import factories
from tests.api.test_counting import home

__all__ = ["home"]

ROOT = Path(__file__).resolve().parent.parent
RULES = ROOT / "deploy/prometheus/rules.yml"
PLAYED = ROOT / "deploy/prometheus/rules-test.yml"
DASHBOARD = ROOT / "deploy/grafana/dashboard.json"
NAME = re.compile(r"\bmemoryhub_[a-z_]+\b")
# In a test's 90 minutes, one for each step: the longest alert waits for an hour.
STEPS = 90
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def rules() -> dict[str, dict[str, Any]]:
    [group] = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return {rule["alert"]: rule for rule in group["rules"]}


def asked() -> list[str]:
    """The expressions of the dashboard's panels."""
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", ())]


def read() -> Samples:
    text = Client().get("/metrics").content.decode()
    return {
        (one.name, tuple(sorted(one.labels.items()))): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


@pytest.mark.django_db
def test_every_family_that_alerts_and_dashboard_name_is_there() -> None:
    factories.decay_pass(factories.tenant(), state="done", finished_at=timezone.now())
    factories.privacy_case(factories.end_user(factories.tenant()))
    text = Client().get("/metrics").content.decode()
    there = {one.name for family in text_string_to_metric_families(text) for one in family.samples}
    there |= {f"memoryhub_{name}" for name in BY_LABELS_THAT_COME}
    named = {name for text in [*(rule["expr"] for rule in rules().values()), *asked()] for name in NAME.findall(text)}
    assert len(named) > 25
    assert sorted(named - there) == []


# Their labels are known once something was counted.
BY_LABELS_THAT_COME = (
    "queue_parked",
    "model_calls_total",
    "model_tokens_total",
    "model_cost_dollars_total",
    "model_call_seconds_bucket",
    "model_call_seconds_count",
    "model_failures_total",
    "mcp_calls_total",
    # Where WAL is archived.
    "archive_age_seconds",
    "archive_failures_total",
)


@pytest.mark.django_db
def test_legends_name_labels_that_the_answers_have() -> None:
    """With another one Grafana shows an empty name, and lines that nobody can tell apart."""
    factories.decay_pass(factories.tenant(), state="done", finished_at=timezone.now())
    factories.privacy_case(factories.end_user(factories.tenant()))
    labels: dict[str, set[str]] = {}
    for name, pairs in read():
        labels.setdefault(name, set()).update(label for label, _ in pairs)
    checked = 0
    for panel in json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]:
        for target in panel["targets"]:
            shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            grouped = re.findall(r"\bby \(([^)]*)\)", target["expr"])
            one_by_one = set() if grouped else labels[target["expr"]]
            kept = {word.strip() for words in grouped for word in words.split(",")} - {"le"} | one_by_one
            assert shown == kept, (panel["title"], target["legendFormat"])
            checked += bool(shown)
    assert checked > 10


def test_panels_lie_beside_each_other_and_ask_the_chosen_source() -> None:
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    [source] = dashboard["templating"]["list"]
    taken: list[tuple[int, int]] = []
    for panel in dashboard["panels"]:
        assert panel["datasource"] == {"type": source["query"], "uid": f"${{{source['name']}}}"}
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        taken += [(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])]
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
    assert len(set(taken)) == len(taken)
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


def test_every_alert_has_its_runbook() -> None:
    page = (ROOT / "docs/runbooks.md").read_text(encoding="utf-8")
    titles = re.findall(r"^## (MemoryHub\w+)$", page, re.MULTILINE)
    assert titles == list(rules())
    for name, rule in rules().items():
        assert rule["annotations"]["runbook"] == f"docs/runbooks.md#{name.lower()}"
        section = page.partition(f"## {name}\n")[2].partition("\n## ")[0]
        assert all(f"**{word}**" in section for word in ("Means", "Look", "Do")), name
        assert f"`{name}`" in page.partition("## How each alert was tried")[2], name


# What causes each alert; the others of the hub's figures stay as in one that works.


def _person() -> Any:
    return factories.end_user(factories.tenant())


def _queue(**values: Any) -> None:
    session = factories.session(_person(), [("user", "Hello.")])
    SessionQueue.objects.update_or_create(tenant_id=session.tenant_id, session=session, defaults=values)


def _away(patch: pytest.MonkeyPatch) -> None:
    def away() -> Any:
        raise OperationalError

    patch.setattr(metrics, "FIGURES", (*metrics.FIGURES, away))


def _capped() -> None:
    tenant, now = factories.tenant(), timezone.now()
    LanguageModel.objects.create(tenant=tenant, daily_tokens=10, updated_at=now)
    DailySpending.objects.create(tenant=tenant, day=now.date(), tokens=10)


def _unembedded() -> None:
    fact = factories.fact(_person(), "Lives in Leiden.")
    type(fact).objects.filter(pk=fact.pk).update(updated_at=ago(minutes=20))


def _reviewed() -> None:
    fact = factories.fact(_person(), "Lives in Leiden.")
    factories.review_item(fact, created_at=ago(days=9))


def _slow(observe: Callable[[], None]) -> Callable[[], None]:
    def often() -> None:
        for _ in range(20):
            observe()

    return often


def _busy() -> None:
    """A minute of a hub that works."""
    for _ in range(200):
        families.note_request("api/v1/context", "POST", 200, 0.01)
        families.note_request("api/v1/turns", "POST", 202, 0.01)
        families.CONTEXT_SECONDS.observe(0.01)
        families.SEARCH_SECONDS.observe(0.02)
        families.MODEL_SECONDS.observe(2.0, "memory_update")
    families.note_request("api/v1/context", "POST", 500, 0.01)
    families.MODEL_FAILURES.count("memory_update", "model_timeout")


def _full(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("memories.api.metrics.shutil.disk_usage", lambda _: Disk(100, 5))


class Disk:
    def __init__(self, total: int, free: int) -> None:
        self.total, self.free = total, free


def _crowded(patch: pytest.MonkeyPatch) -> None:
    def database() -> Iterator[Any]:
        yield metrics._gauge("database_connections", "", [((), 95)])
        yield metrics._gauge("database_connections_max", "", [((), 100)])

    patch.setattr(metrics, "FIGURES", tuple(database if one is metrics.database else one for one in metrics.FIGURES))


def _archiving(patch: pytest.MonkeyPatch) -> None:
    def archiver() -> Iterator[Any]:
        yield metrics._gauge("archive_age_seconds", "", [((), 3600)])

    patch.setattr(metrics, "FIGURES", (*metrics.FIGURES, archiver))


def _unsaved(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(settings, "MEMORYHUB_BACKUP_NIGHTLY", "dump")
    Backup.objects.update(started_at=ago(days=2))


def _erring() -> None:
    for _ in range(95):
        families.note_request("api/v1/context", "POST", 200, 0.01)
    for _ in range(5):
        families.note_request("api/v1/context", "POST", 500, 0.01)


def _refusing() -> None:
    for _ in range(95):
        families.note_request("api/v1/context", "POST", 200, 0.01)
    for _ in range(5):
        families.REFUSED.count("api/v1/context")
        families.note_request("busy", "POST", 503, 0.0)


def _model_failing() -> None:
    for _ in range(3):
        families.MODEL_SECONDS.observe(2.0, "memory_update")
    families.MODEL_FAILURES.count("memory_update", "model_timeout")


def ago(**how: float) -> Any:
    return timezone.now() - timedelta(**how)


CAUSES: dict[str, Callable[..., Any]] = {
    "MemoryHubDatabaseDown": _away,
    "MemoryHubWorkerMissing": lambda: WorkerHeartbeat.objects.filter(kind="cluster").delete(),
    "MemoryHubWorkOverdue": lambda: _queue(due_at=ago(minutes=10)),
    "MemoryHubErrors": _erring,
    "MemoryHubBusy": _refusing,
    "MemoryHubContextsSlow": _slow(lambda: families.CONTEXT_SECONDS.observe(0.4)),
    "MemoryHubSearchesSlow": _slow(lambda: families.SEARCH_SECONDS.observe(0.9)),
    "MemoryHubIngestSlow": _slow(lambda: families.note_request("api/v1/turns", "POST", 202, 0.9)),
    "MemoryHubSessionsParked": lambda: _queue(parked_at=ago(minutes=1), failure="worker_lost"),
    "MemoryHubModelPaused": lambda: EndpointState.objects.create(until=timezone.now() + timedelta(minutes=9)),
    "MemoryHubModelFailing": _model_failing,
    "MemoryHubBudgetReached": _capped,
    "MemoryHubEmbeddingLag": _unembedded,
    "MemoryHubReviewOld": _reviewed,
    "MemoryHubCaseNearItsDay": lambda: factories.privacy_case(_person(), due_at=ago(days=-2)),
    "MemoryHubCaseFailed": lambda: factories.privacy_case(_person(), state="failed", due_at=ago(days=-20)),
    "MemoryHubErasureStuck": lambda: factories.privacy_case(
        _person(), state="running", approved_at=ago(hours=2), due_at=ago(days=-20)
    ),
    "MemoryHubForgettingHeld": lambda: factories.decay_pass(factories.tenant(), state="held"),
    "MemoryHubForgettingLate": lambda: DecayPass.objects.update(finished_at=ago(days=3)),
    "MemoryHubDiskFilling": _full,
    "MemoryHubBackupLate": _unsaved,
    "MemoryHubArchiveFailing": _archiving,
    "MemoryHubConnectionsShort": _crowded,
}
PATCHING = (_away, _full, _crowded, _archiving, _unsaved)


def works() -> None:
    """A hub that works: its workers are there, and the pass of the last night has ended."""
    now = timezone.now()
    for kind in ("cluster", "embedder"):
        WorkerHeartbeat.objects.create(name=kind, kind=kind, beat_at=now, started_at=now)
    factories.decay_pass(factories.tenant(), state="done", finished_at=ago(hours=9))
    Backup.objects.create(kind="dump", started_at=ago(hours=9), finished_at=ago(hours=9))


@pytest.mark.django_db
@pytest.mark.usefixtures("home")
@pytest.mark.soak
def test_each_alert_is_caused(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.MEMORYHUB_LLM = "rules"
    works()
    tests = [played("MemoryHubDown", {}, {}, up=0)]
    for name, cause in CAUSES.items():
        with monkeypatch.context() as patch, transaction.atomic():
            before = read()
            WorkerHeartbeat.objects.update(beat_at=timezone.now())
            cause(*([patch] if cause in PATCHING else []))
            tests.append(played(name, before, read()))
            transaction.set_rollback(True)
    before = read()
    WorkerHeartbeat.objects.update(beat_at=timezone.now())
    _busy()
    works_well = played("A hub that works", before, read(), fires=False)
    tests.append(works_well | {"promql_expr_test": [fired(name, fires=False) for name in rules()]})
    assert [one["name"] for one in tests[:-1]] == list(rules())
    document = {"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": tests}
    note = (
        "# Written by `make alerts`: what /metrics said in each state. docs/runbooks.md says how these were caused.\n"
    )
    PLAYED.write_text(note + yaml.safe_dump(document, sort_keys=False, width=120), encoding="utf-8")
    for what in (["check", "rules", str(RULES)], ["test", "rules", str(PLAYED)]):
        done = subprocess.run([os.environ["PROMTOOL"], *what], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def played(name: str, before: Samples, after: Samples, *, up: int = 1, fires: bool = True) -> dict[str, Any]:
    """What was read, as series of a test: gauges as they are, sums as if they grew so each minute."""
    concerned = [rules()[name]] if fires else rules().values()
    wanted = {one for rule in concerned for one in NAME.findall(rule["expr"])}
    series = [{"series": 'up{job="memory-hub"}', "values": f"{up}x{STEPS}"}]
    for (metric, labels), value in sorted(after.items()):
        if metric not in wanted:
            continue
        shown = ",".join(f"{label}={json.dumps(text)}" for label, text in labels)
        is_sum = metric.endswith(("_total", "_bucket", "_count"))
        grows = value - before.get((metric, labels), 0.0) if is_sum else 0.0
        if is_sum and not grows:
            continue
        # promtool's clock begins at 0.
        moment = timezone.now().timestamp() if metric.endswith("timestamp_seconds") else 0.0
        begins = 0.0 if is_sum else value - moment
        series.append({"series": f"{metric}{{{shown}}}", "values": f"{begins:.0f}+{grows:.0f}x{STEPS}"})
    return {"name": name, "interval": "1m", "input_series": series, "promql_expr_test": [fired(name, fires=fires)]}


def fired(name: str, *, fires: bool) -> dict[str, Any]:
    alert = f'ALERTS{{alertname="{name}",alertstate="firing"}}'
    return {
        "expr": f"(count({alert}) or vector(0)) > bool 0",
        "eval_time": f"{STEPS}m",
        "exp_samples": [{"labels": "{}", "value": int(fires)}],
    }
