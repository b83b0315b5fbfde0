"""Attempts at a batch: what is recorded, what failures leave behind, and races between real connections."""

import logging
import threading
from concurrent.futures import Future
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.db.models.functions import Now
from django_q.exceptions import TimeoutException

from memories import conf, exceptions, tasks
from memories.curation.facts.adding import FactDraft, add_fact
from memories.exceptions import DuplicateFact
from memories.extraction import consolidation, gathering
from memories.facts.writer import FactWriter
from memories.models import EndUser, ExtractionRun, Fact, FactRevision, Session, SessionQueue
from memories.queue import session_queue
from tests import factories
from tests.conftest import Start
from tests.database import PATIENCE, blocked
from tests.factories import NOW
from tests.model import HeldAnswer, Model, candidate

SAID = (("user", "I live in Leiden"), ("assistant", "Noted"))


def consolidate(session: Session) -> ExtractionRun | None:
    return consolidation.consolidate(session_id=session.pk, now=NOW)


def committed(session: Session) -> ExtractionRun:
    run = consolidate(session)
    assert run
    assert run.status == "committed", run.failure
    return run


def due(person: EndUser, *said: tuple[str, str]) -> Session:
    return factories.session(person, said or SAID, flush=True)


def post(session: Session, *said: tuple[str, str], flush: bool = True) -> None:
    named = {"session_id": session.external_id, "agent_id": session.agent_id, "flush": flush}
    factories.session(session.end_user, said, **named)


def queue_of(session: Session) -> SessionQueue:
    return SessionQueue.objects.get(pk=session.pk)


def contents() -> list[str]:
    return list(Fact.objects.filter(status="active").order_by("content").values_list("content", flat=True))


def end_lease(session: Session) -> None:
    SessionQueue.objects.filter(pk=session.pk).update(lease_until=Now() - timedelta(seconds=1))


def make_due(session: Session) -> None:
    SessionQueue.objects.filter(pk=session.pk).update(due_at=Now() - timedelta(seconds=1))


class TestAlone:
    """One worker, nobody else."""

    def test_run_is_recorded(self, model: Model, person: EndUser) -> None:
        model.say(candidate(), candidate(confidence=0.1))
        session = due(person, *SAID, ("user", "thanks"), ("assistant", "Any time"))
        run = committed(session)
        run.refresh_from_db()
        assert (run.tenant, run.end_user, run.session) == (person.tenant, person, session)
        assert (run.first_number, run.last_number, run.fed_turns, run.attempt) == (1, 4, 2, 1)
        assert (run.extractor, run.prompt_version, run.guidance_version) == ("llm:test", "memory_update-5", 1)
        assert (run.calls, run.prompt_tokens, run.completion_tokens, run.cost) == (1, 70, 7, None)
        assert (run.outcome, run.refusals, run.failure) == ({"stored": 1}, {"low_confidence": 1}, "")
        assert run.started_at == NOW
        assert run.finished_at
        assert NOW < run.finished_at < NOW + timedelta(minutes=1)

    def test_watermark_moves_and_the_row_is_disarmed(self, model: Model, person: EndUser) -> None:
        session = due(person)
        committed(session)
        queue = queue_of(session)
        assert (queue.extracted_number, queue.due_at, queue.lease_token, queue.attempts) == (2, None, None, 0)
        assert consolidate(session) is None
        assert len(model.prompts) == 1

    def test_attempt_and_run_are_recorded_before_the_call(self, model: Model, person: EndUser) -> None:
        session = due(person)
        seen: list[Any] = []

        def look() -> dict[str, Any]:
            run = ExtractionRun.objects.get()
            seen.append((queue_of(session).attempts, run.status, run.attempt, run.finished_at))
            return {"new_facts": []}

        model.answers.append(look)
        committed(session)
        assert seen == [(1, "running", 1, None)]

    def test_nothing_due(self, model: Model, person: EndUser) -> None:
        session = factories.session(person, SAID)
        assert consolidate(session) is None
        assert (queue_of(session).attempts, model.prompts) == (0, [])

    def test_unknown_session(self, model: Model, person: EndUser) -> None:
        assert consolidation.consolidate(session_id=person.pk, now=NOW) is None

    @pytest.mark.parametrize("said", [[("user", "ok"), ("assistant", "Fine")], [("user", "谢谢")]])
    def test_nothing_to_feed_passes_over(self, model: Model, person: EndUser, said: list[tuple[str, str]]) -> None:
        session = due(person, *said)
        assert consolidate(session) is None
        queue = queue_of(session)
        assert (queue.extracted_number, queue.due_at, queue.attempts) == (len(said), None, 0)
        assert (model.prompts, ExtractionRun.objects.count()) == ([], 0)

    def test_without_a_model_nothing_is_claimed(self, model: Model, person: EndUser, settings: LazySettings) -> None:
        session = due(person)
        settings.MEMORYHUB_LLM = conf.LLM_OFF
        assert consolidate(session) is None
        assert (queue_of(session).attempts, queue_of(session).extracted_number) == (0, 0)

    def test_long_session_takes_one_call_a_batch(self, model: Model, person: EndUser) -> None:
        said = [(role, f"{number} " + "word " * 180) for number in range(40) for role in ("user", "assistant")]
        session = due(person, *said)
        runs = []
        while run := consolidate(session):
            runs.append(run)
        ranges = [(run.first_number, run.last_number) for run in runs]
        assert len(runs) == len(model.prompts) > 1
        assert [first for first, _ in ranges] == [1, *(last + 1 for _, last in ranges[:-1])]
        assert ranges[-1][1] == 80

    def test_failing_model(self, model: Model, person: EndUser) -> None:
        """What other errors mean: tests/queue/test_retry_policy.py."""
        error = exceptions.ModelUnavailable
        model.answers.append(error())
        session = due(person)
        run = consolidate(session)
        assert run
        run.refresh_from_db()
        assert (run.status, run.failure, run.calls) == ("failed", error.code, 1)
        assert run.finished_at
        queue = queue_of(session)
        assert (queue.attempts, queue.failure, queue.lease_token, queue.extracted_number) == (1, error.code, None, 0)
        assert consolidate(session) is None

    def test_what_asking_again_cannot_change_is_parked(self, model: Model, person: EndUser) -> None:
        error = exceptions.ModelRefused
        model.answers.append(error())
        session = due(person)
        run = consolidate(session)
        assert run
        assert (run.status, run.failure) == ("parked", error.code)
        assert queue_of(session).failure == error.code
        # New turns revive it.
        post(session, ("user", "And 我喜欢喝茶"), ("assistant", "Noted"))
        assert committed(session).last_number == 4

    def test_failed_batch_is_tried_again(self, model: Model, person: EndUser) -> None:
        model.answers.append(exceptions.ModelUnavailable())
        model.say(candidate())
        session = due(person)
        consolidate(session)
        make_due(session)
        assert tasks.consolidate_session(str(session.pk)) == 1
        assert ExtractionRun.objects.get(status="committed").attempt == 2
        assert (contents(), queue_of(session).failure, queue_of(session).attempts) == (["Lives in Leiden"], "", 0)

    def test_model_says_when_to_come_back(self, model: Model, person: EndUser) -> None:
        model.answers.append(exceptions.ModelRateLimited(retry_after=3600))
        session = due(person)
        consolidate(session)
        assert SessionQueue.objects.filter(pk=session.pk, due_at__gt=Now() + timedelta(seconds=3500)).exists()

    def test_each_call_renews_the_lease(self, model: Model, person: EndUser) -> None:
        session = due(person)
        fresh = SessionQueue.objects.filter(pk=session.pk, lease_until__gt=Now() + timedelta(seconds=60))

        def ask_twice() -> dict[str, Any]:
            end_lease(session)
            assert not fresh.exists()
            model.call_again()
            assert fresh.exists()
            return {"new_facts": []}

        model.answers.append(ask_twice)
        assert committed(session).calls == 2

    def test_dead_workers_run_is_closed_by_the_next_one(self, model: Model, person: EndUser) -> None:
        session = due(person)
        assert session_queue.claim(session.pk)
        lost = factories.run(session, status="running")
        assert consolidate(session) is None
        lost.refresh_from_db()
        assert lost.status == "running", "its lease still lives"
        end_lease(session)
        model.say(candidate())
        assert committed(session).attempt == 2
        lost.refresh_from_db()
        assert (lost.status, lost.failure) == ("failed", "worker_lost")
        assert lost.finished_at == NOW

    def test_batch_that_kills_its_workers_is_parked(self, model: Model, person: EndUser) -> None:
        session = due(person)
        for _ in range(5):
            assert session_queue.claim(session.pk)
            end_lease(session)
        lost = factories.run(session, status="running", attempt=5)
        assert consolidate(session) is None
        lost.refresh_from_db()
        assert (lost.status, lost.failure) == ("parked", "worker_lost")
        assert (queue_of(session).failure, model.prompts) == ("worker_lost", [])

    def test_error_of_ours_writes_nothing_and_postpones(
        self, model: Model, person: EndUser, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        model.say(
            candidate("Drinks tea"), candidate(), profile={"work_context": {"summary": "x", "should_update": True}}
        )
        monkeypatch.setattr("memories.reconcile.profile.rewrite", breaking)
        session = due(person)
        with pytest.raises(ZeroDivisionError):
            consolidate(session)
        run, queue = ExtractionRun.objects.get(), queue_of(session)
        assert (run.status, run.failure) == ("failed", "internal_error")
        assert (queue.failure, queue.attempts, queue.lease_token, queue.extracted_number) == (
            "internal_error",
            1,
            None,
            0,
        )
        assert (Fact.objects.count(), FactRevision.objects.count()) == (0, 0)

    def test_error_before_the_call_postpones_too(
        self, model: Model, person: EndUser, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(gathering, "gather", breaking)
        session = due(person)
        with pytest.raises(ZeroDivisionError):
            consolidate(session)
        assert (queue_of(session).failure, ExtractionRun.objects.count()) == ("internal_error", 0)

    def test_cluster_that_ends_the_task_gives_the_batch_back(self, model: Model, person: EndUser) -> None:
        def run_out_of_time() -> dict[str, Any]:
            raise TimeoutException

        model.answers.append(run_out_of_time)
        session = due(person)
        with pytest.raises(TimeoutException):
            tasks.consolidate_session(str(session.pk))
        assert (queue_of(session).failure, queue_of(session).lease_token) == ("internal_error", None)
        assert ExtractionRun.objects.get().status == "failed"

    def test_task_survives_and_logs_no_content(
        self, model: Model, person: EndUser, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr(gathering, "gather", breaking)
        session = due(person)
        with caplog.at_level(logging.DEBUG):
            assert tasks.consolidate_session(str(session.pk)) == 0
        assert f"consolidate_session('{session.pk}',): ZeroDivisionError at breaking" in caplog.text
        assert "Leiden" not in caplog.text
        assert queue_of(session).failure == "internal_error"


def breaking(*_: Any, **__: Any) -> None:
    raise ZeroDivisionError("I live in Leiden")


@pytest.mark.django_db(transaction=True)
class TestRaces:
    """Workers on connections of their own; gates decide who is first."""

    def held(
        self, model: Model, start: Start, session: Session, *new_facts: dict[str, Any]
    ) -> tuple[HeldAnswer, "Future[Any]"]:
        """A worker that waits inside the model call for `session`."""
        gate = HeldAnswer(new_facts=list(new_facts))
        model.answers.append(gate)
        worker = start(consolidate, session)
        assert gate.reached.wait(PATIENCE)
        return gate, worker

    def ended(self, gate: HeldAnswer, worker: "Future[Any]") -> ExtractionRun:
        gate.opened.set()
        run = worker.result(PATIENCE)
        assert isinstance(run, ExtractionRun)
        stored = ExtractionRun.objects.filter(pk=run.pk).values_list("status", flat=True).first()
        assert stored in (run.status, None)
        return run

    def test_two_workers_on_one_session(self, model: Model, person: EndUser, start: Start) -> None:
        session = due(person)
        gate, first = self.held(model, start, session, candidate(), candidate("Drinks tea"))
        assert start(consolidate, session).result(PATIENCE) is None
        assert self.ended(gate, first).status == "committed"
        assert contents() == ["Drinks tea", "Lives in Leiden"]
        assert len(model.prompts) == 1

    def test_slow_worker_loses_its_lease(self, model: Model, person: EndUser, start: Start) -> None:
        session = due(person)
        gate, slow = self.held(model, start, session, candidate(), candidate("Is slow"))
        end_lease(session)
        model.say(candidate())
        assert committed(session).attempt == 2
        lost = self.ended(gate, slow)
        assert (lost.status, lost.failure) == ("discarded", "lease_lost")
        assert (contents(), Fact.objects.get().mentions) == (["Lives in Leiden"], 1)
        assert sorted(ExtractionRun.objects.values_list("status", flat=True)) == ["committed", "discarded"]
        assert queue_of(session).extracted_number == 2

    def test_slow_worker_makes_no_further_call(self, model: Model, person: EndUser) -> None:
        session = due(person)

        def ask_again_too_late() -> dict[str, Any]:
            end_lease(session)
            assert session_queue.claim(session.pk)
            model.call_again()
            return candidate()

        model.answers.append(ask_again_too_late)
        run = consolidate(session)
        assert run
        assert (run.status, run.failure, run.calls) == ("discarded", "lease_lost", 1)
        assert (queue_of(session).attempts, queue_of(session).failure) == (2, "")

    def test_erasure_during_the_call(self, model: Model, person: EndUser, start: Start) -> None:
        session = due(person)
        gate, worker = self.held(model, start, session, candidate())
        EndUser.objects.filter(pk=person.pk).update(generation=2)
        run = self.ended(gate, worker)
        assert (run.status, run.failure, Fact.objects.count()) == ("discarded", "lease_lost", 0)
        assert queue_of(session).extracted_number == 0

    def test_person_is_gone_during_the_call(self, model: Model, person: EndUser, start: Start) -> None:
        gate, worker = self.held(model, start, due(person), candidate())
        person.delete()
        assert self.ended(gate, worker).status == "discarded"
        assert (ExtractionRun.objects.count(), Fact.objects.count(), EndUser.objects.count()) == (0, 0, 0)

    def test_turns_during_the_call_form_the_next_batch(self, model: Model, person: EndUser, start: Start) -> None:
        session = due(person)
        gate, worker = self.held(model, start, session, candidate())
        post(session, ("user", "I drink tea"), ("assistant", "Me too"))
        assert self.ended(gate, worker).last_number == 2
        assert queue_of(session).extracted_number == 2
        model.say(candidate("Drinks tea", evidence=[3]))
        run = committed(session)
        assert (run.first_number, run.last_number, run.attempt) == (3, 4, 1)
        assert "I live in Leiden" in model.prompts[0]
        assert "I live in Leiden</turn>" not in model.prompts[1]
        assert contents() == ["Drinks tea", "Lives in Leiden"]

    def test_key_states_the_same_while_the_worker_commits(
        self, model: Model, person: EndUser, start: Start, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The worker has looked and not yet inserted: the key waits for it, and learns of what it made."""
        make, looked, go_on = FactWriter._make, threading.Event(), threading.Event()

        def make_later(writer: FactWriter, *what: Any) -> Any:
            looked.set()
            assert go_on.wait(PATIENCE)
            return make(writer, *what)

        monkeypatch.setattr(FactWriter, "_make", make_later)
        model.say(candidate("Lives in Leiden"))
        worker = start(consolidate, due(person))
        assert looked.wait(PATIENCE)
        draft = FactDraft("lives in LEIDEN", "identity")
        given: dict[str, Any] = {"end_user": person, "draft": draft, "actor": factories.COMMAND, "now": NOW}
        late = blocked(lambda: add_fact(**given))
        go_on.set()
        assert worker.result(PATIENCE).outcome == {"stored": 1}
        with pytest.raises(DuplicateFact) as refused:
            late.result(PATIENCE)
        assert refused.value.fact_id == Fact.objects.get().pk
