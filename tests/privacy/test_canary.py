"""A person full of markers is erased while everything is at work on them: a scan of its own finds none afterwards."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connections
from django.utils import timezone
from django_q.models import OrmQ
from django_q.signing import SignedPackage

from memories import tasks
from memories.curation.replays import sweep_replays
from memories.extraction import consolidation
from memories.models import EndUser, Fact, PrivacyCase, SessionQueue
from memories.privacy import cases, registry, running
from memories.queue import rearming
from tests import factories
from tests.admin.pages import page_of
from tests.database import PATIENCE
from tests.factories import COMMAND
from tests.model import candidate, install
from tests.privacy.canary import Canary, embed_all
from tests.privacy.scan import marks_in

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def home(settings: LazySettings, tmp_path: Path) -> Path:
    settings.HOME = tmp_path
    settings.MEMORYHUB_ERASURE_LEDGER = str(tmp_path / "erasures.jsonl")
    return tmp_path


@pytest.fixture
def canary(home: Path, settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> Canary:
    made = Canary(install(settings, monkeypatch))
    made.build()
    return made


Rows = dict[str, list[str]]


def rows_of(person: EndUser) -> Rows:
    """All that is stored of a person, as text."""
    return {
        store.model: sorted(str(row) for row in store.rows_of(person).values())
        for store in registry.STORES
        if store.model.startswith("memories.")
    }


def differences(before: tuple[Rows, ...], after: tuple[Rows, ...]) -> list[tuple[str, set[str]]]:
    """Stores whose rows are other ones, with these."""
    pairs = [(model, old[model], new[model]) for old, new in zip(before, after, strict=True) for model in old]
    return [(model, set(old) ^ set(new)) for model, old, new in pairs if old != new]


def witness(of: Canary | None) -> EndUser:
    """Somebody with a bit of everything, of the same tenant or of another one where the id is the same."""
    person = factories.end_user(of.tenant if of else None)
    session = factories.session(person, [("user", "I keep bees"), ("assistant", "How many hives?")])
    fact = factories.fact(person, "Keeps bees", tags=["bees"])
    factories.evidence(fact, session.turns.get(number=1))
    factories.attachment(session.turns.get(number=1), "A hive weighs 40 kg.")
    factories.episode(session)
    factories.profile_section(person)
    factories.memory_file(person)
    factories.diary_entry(person)
    factories.dream(person)
    factories.group_fact(factories.memory_group(person), person, content="Bees swarm in May")
    factories.webhook_delivery(factories.webhook(person.tenant), person)
    factories.idempotency_record(person, body=b'{"bees": 3}')
    return person


@contextmanager
def held_extraction(canary: Canary) -> Iterator[tuple[threading.Event, Future[Any]]]:
    """An extraction of the person that waits for its model; what the model says then holds a marker."""
    asked, answer = threading.Event(), threading.Event()
    session = canary.turns(canary.mark("a session at work"), [canary.message("user"), canary.message("assistant")])
    SessionQueue.objects.filter(pk=session.pk).update(due_at=timezone.now() - timedelta(hours=1))
    late = canary.unkept_mark("what a model said too late")

    def say() -> dict[str, Any]:
        asked.set()
        assert answer.wait(PATIENCE)
        return {"new_facts": [candidate(late)]}

    def work() -> Any:
        try:
            return consolidation.consolidate(session_id=session.pk, now=timezone.now())
        finally:
            connections.close_all()

    canary.model.answers[:] = [say]
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        future.add_done_callback(lambda _: asked.set())
        assert asked.wait(PATIENCE)
        assert not future.done(), future.result()
        try:
            yield answer, future
        finally:
            answer.set()


def open_case(canary: Canary, policy: str) -> PrivacyCase:
    """Checked and scoped: from here on nobody writes or reads the person."""
    given: dict[str, Any] = {"actor": COMMAND, "now": timezone.now()}
    reference = canary.reference("the reference of the erasure")
    case = cases.open_case(tenant=canary.tenant, user_id=canary.user_id, type="erasure", reference=reference, **given)
    cases.verify_identity(case_id=case.pk, expected_version=None, how="call_back", **given)
    return cases.scope_case(case_id=case.pk, expected_version=None, policy=policy, **given)


def erase(case: PrivacyCase) -> PrivacyCase:
    cases.approve_case(case_id=case.pk, expected_version=None, typed_id="", actor=COMMAND, now=timezone.now())
    done = running.carry_out(case_id=case.pk, now=timezone.now())
    assert done.state == "completed", (done.state, done.failure, done.findings)
    return done


def work_all_off() -> None:
    """What workers would do now: whatever is queued, whatever is due, each task as it comes."""
    for row in OrmQ.objects.all():
        task = SignedPackage.loads(row.payload)
        getattr(tasks, task["func"].rpartition(".")[2])(*task["args"], **task["kwargs"])
        row.delete()
    rearming.rearm()
    rearming.rearm_windows()
    tasks.forget()
    embed_all()


def test_nothing_is_left_though_all_is_at_work(canary: Canary, home: Path) -> None:
    # The scan finds every marker first.
    found = marks_in([*canary.marks, *canary.unkept], home)
    assert {mark: what for mark, what in canary.marks.items() if mark not in found} == {}
    assert {what: found[mark] for mark, what in canary.unkept.items() if mark in found} == {}
    assert len(canary.marks) > 60
    near, far = witness(canary), witness(None)
    EndUser.objects.filter(pk=far.pk).update(external_id=canary.user_id.upper())
    embed_all()
    before = rows_of(near), rows_of(far)
    fact = Fact.objects.filter(end_user=canary.person, status="active").first()
    assert fact
    form = page_of(fact)
    assert canary.admin.get(form).status_code == 200
    with held_extraction(canary) as (answer, extraction):
        case = open_case(canary, "refuse")
        body: dict[str, Any] = {"user_id": canary.user_id, "session_id": "second", "messages": [canary.message("user")]}
        assert canary.client.post("/turns", body).status_code == 423
        canary.unkept |= {mark: what for mark, what in canary.marks.items() if mark == body["messages"][0]["content"]}
        assert set(canary.marks) - set(canary.unkept) == set(marks_in(canary.marks, home))
        done = erase(case)
        assert nothing_left(canary, home) == {}
        answer.set()
        assert getattr(extraction.result(PATIENCE), "status", None) != "committed"
    work_all_off()
    assert canary.admin.post(form, {"content": "taken over"}).status_code in (302, 404)
    for key, sent in canary.keys.items():
        again = canary.client.post(sent["path"], sent["body"], **{"Idempotency-Key": key})
        assert again.status_code == 410, again.content
    assert differences(before, (rows_of(near), rows_of(far))) == []
    sweep_replays(now=timezone.now() + timedelta(days=3))
    work_all_off()
    assert nothing_left(canary, home) == {}
    assert not EndUser.objects.filter(tenant=canary.tenant, external_id=canary.user_id).exists()
    assert done.receipt
    assert bytes(done.needles) == b""
    canary.for_person.refresh_from_db()
    assert canary.for_person.allowed_users == ["x"]


def nothing_left(canary: Canary, home: Path) -> dict[str, set[str]]:
    """What the scan still finds: the trail and the ledger keep ids of ours."""
    found = marks_in([*canary.marks, *canary.unkept], home)
    kept = {"public.memories_auditevent", "file erasures.jsonl", "samples"}
    said = {**canary.marks, **canary.unkept}
    return {said[mark]: places for mark, places in found.items() if not (said[mark].endswith(".id") and places <= kept)}


def test_who_comes_again_finds_nothing_of_before(canary: Canary, home: Path) -> None:
    done = erase(open_case(canary, "flag"))
    body = {"user_id": canary.user_id, "session_id": "anew", "messages": [{"role": "user", "content": "Hello again"}]}
    assert canary.client.post("/turns", body).status_code in (200, 201, 202)
    again = canary.person
    assert again.erased_before
    for path in ("/facts", "/episodes", "/profile"):
        answer = canary.client.get(path, user_id=canary.user_id).json()
        assert not any(mark in str(answer) for mark in canary.marks if mark != canary.user_id), path
    del canary.marks[canary.user_id]
    assert nothing_left(canary, home) == {}
    assert done.findings["hits"] == {}


LEFT = {
    "django_q.OrmQ": "django_q.OrmQ.payload",
    "django_q.Task": "django_q.Task.result",
    "sessions.Session": "sessions.Session.session_data",
    "admin.LogEntry": "admin.LogEntry.object_id",
    "memories.EndpointState": "memories.EndpointState.last_session",
}


def test_a_store_that_is_forgotten_shows(canary: Canary, monkeypatch: pytest.MonkeyPatch) -> None:
    case, stores = open_case(canary, "flag"), registry.all_stores()
    monkeypatch.setattr(registry, "all_stores", lambda: tuple(store for store in stores if store.model not in LEFT))
    cases.approve_case(case_id=case.pk, expected_version=None, typed_id="", actor=COMMAND, now=timezone.now())
    done = running.carry_out(case_id=case.pk, now=timezone.now())
    assert (done.state, done.failure) == ("failed", "found")
    assert set(LEFT.values()) <= set(done.findings["hits"])
    assert {place.rpartition(".")[0] for place in done.findings["hits"]} == set(LEFT)
    assert bytes(done.needles)
    said = str(done.findings)
    assert not any(mark in said for mark in canary.marks)
