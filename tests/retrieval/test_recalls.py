"""Recalls: noted without a write, written in the background, once a day, without touching anything else."""

import threading
import uuid
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import OperationalError
from django.forms.models import model_to_dict

from memories import conf
from memories.models import EndUser, Episode, Fact, FactRevision, Status
from memories.retrieval import recalls
from memories.retrieval.recalls import Buffer, RecallWriter
from memories.scoring.decay import DecayInput, decay_score, forget_at
from tests import factories
from tests.database import at_once, held, statements
from tests.factories import NOW

DAY = timedelta(days=1)
LONG_AGO = NOW - timedelta(days=90)
ONE, TWO, THREE = (uuid.UUID(int=number) for number in (1, 2, 3))


@pytest.fixture(autouse=True)
def buffer(monkeypatch: pytest.MonkeyPatch) -> Buffer:
    fresh = Buffer()
    monkeypatch.setattr(recalls, "_buffer", fresh)
    return fresh


def recall(*facts: Fact, at: datetime = NOW) -> int:
    recalls.note("fact", [fact.pk for fact in facts], now=at)
    return recalls.flush(now=at)


class TestBuffer:
    def test_the_latest_recall_counts(self) -> None:
        buffer = Buffer()
        buffer.note([("fact", ONE), ("fact", TWO)], now=NOW)
        buffer.note([("fact", ONE)], now=NOW + DAY)
        assert buffer.take() == {("fact", ONE): NOW + DAY, ("fact", TWO): NOW}
        assert len(buffer) == 0

    def test_beyond_the_bound_the_oldest_are_dropped_and_counted(self) -> None:
        buffer = Buffer(most=2)
        buffer.note([("fact", ONE), ("fact", TWO)], now=NOW)
        buffer.note([("fact", ONE)], now=NOW)
        assert buffer.dropped == 0
        buffer.note([("fact", THREE)], now=NOW)
        assert (set(buffer.take()), buffer.dropped) == ({("fact", ONE), ("fact", THREE)}, 1)

    def test_what_is_put_back_gives_way_to_what_came_since(self) -> None:
        buffer = Buffer(most=2)
        buffer.note([("fact", ONE), ("fact", TWO)], now=NOW)
        taken = buffer.take()
        buffer.note([("fact", TWO), ("fact", THREE)], now=NOW + DAY)
        buffer.requeue(taken)
        assert buffer.take() == {("fact", TWO): NOW + DAY, ("fact", THREE): NOW + DAY}
        assert buffer.dropped == 1

    def test_threads_lose_nothing(self) -> None:
        buffer = Buffer()
        keys = [[("fact", uuid.UUID(int=8 * number + lane)) for number in range(200)] for lane in range(8)]
        taken: dict[Any, datetime] = {}
        gate = threading.Barrier(9)

        def write(lane: int) -> None:
            gate.wait()
            for key in keys[lane]:
                buffer.note([key], now=NOW)

        threads = [threading.Thread(target=write, args=(lane,)) for lane in range(8)]
        for thread in threads:
            thread.start()
        gate.wait()
        while any(thread.is_alive() for thread in threads):
            taken |= buffer.take()
        assert len(taken | buffer.take()) == 1_600


@pytest.mark.django_db
class TestFlush:
    def test_a_note_writes_nothing(self, person: EndUser) -> None:
        fact = factories.fact(person)
        assert statements(lambda: recalls.note("fact", [fact.pk], now=NOW)) == []

    def test_a_recalled_fact_fades_anew(self, person: EndUser) -> None:
        fact = factories.fact(person, now=LONG_AGO, importance=0.8, mentions=2)
        fact.decay_score = 0.5
        fact.save()
        before = model_to_dict(fact)
        assert recall(fact) == 1
        fact.refresh_from_db()
        rules = conf.hub_rules()
        memory = DecayInput(0.8, NOW, 2, fact.category)
        assert fact.last_recalled_at == NOW
        assert fact.decay_score == decay_score(memory, rules, now=NOW) == 0.8
        assert fact.forget_at == forget_at(memory, rules, below=rules.forget_below)
        changed = {name for name, value in model_to_dict(fact).items() if value != before[name]}
        assert changed == {"last_recalled_at", "forget_at", "decay_score"}
        assert (fact.version, fact.updated_at) == (1, LONG_AGO)
        assert not FactRevision.objects.exists()

    def test_a_recalled_episode_fades_anew(self, person: EndUser) -> None:
        episode = factories.episode(factories.session(person), now=LONG_AGO)
        recalls.note("episode", [episode.pk], now=NOW)
        assert recalls.flush(now=NOW) == 1
        found = Episode.objects.get()
        rules = conf.hub_rules()
        expected = forget_at(DecayInput(0.6, NOW), rules, below=rules.forget_episodes_below)
        assert (found.last_recalled_at, found.forget_at, found.version) == (NOW, expected, 1)
        assert found.updated_at == LONG_AGO

    @pytest.mark.parametrize(("later", "written"), [(DAY - timedelta(seconds=1), 0), (DAY, 1)])
    def test_at_most_once_a_day(self, person: EndUser, later: timedelta, written: int) -> None:
        fact = factories.fact(person, now=LONG_AGO)
        assert recall(fact) == 1
        assert recall(fact, at=NOW + later) == written
        fact.refresh_from_db()
        assert fact.last_recalled_at == (NOW + later if written else NOW)

    @pytest.mark.parametrize(
        "over",
        [
            {"status": Status.TRASHED, "trashed_at": LONG_AGO},
            {"status": Status.PENDING},
            {"expires_at": NOW - DAY},
            {"locked": True},
        ],
        ids=["trashed", "pending", "expired", "locked"],
    )
    def test_passed_over(self, person: EndUser, buffer: Buffer, over: dict[str, Any]) -> None:
        fact = factories.fact(person, now=LONG_AGO, **over)
        assert recall(fact) == 0
        assert Fact.objects.get().last_recalled_at is None
        assert len(buffer) == 0

    def test_people_under_restriction_are_passed_over(self) -> None:
        person = factories.end_user(restricted_at=NOW)
        assert recall(factories.fact(person, now=LONG_AGO)) == 0
        assert recall(factories.fact(factories.end_user(), now=LONG_AGO)) == 1

    def test_what_is_gone_is_forgotten(self, person: EndUser, buffer: Buffer) -> None:
        fact = factories.fact(person)
        Fact.objects.all().delete()
        assert (recall(fact), len(buffer)) == (0, 0)

    def test_a_turn_does_not_fade(self, buffer: Buffer) -> None:
        recalls.note("turn", [ONE], now=NOW)
        assert len(buffer) == 0

    def test_pinned_facts_are_marked_and_never_fade(self, person: EndUser) -> None:
        fact = factories.fact(person, now=LONG_AGO, pinned=True)
        assert recall(fact) == 1
        fact.refresh_from_db()
        assert (fact.last_recalled_at, fact.forget_at) == (NOW, None)

    def test_each_tenant_has_its_own_numbers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        slow, quick = factories.end_user(), factories.end_user()
        facts = [factories.fact(one, now=LONG_AGO, importance=0.8) for one in (slow, quick)]
        days = {slow.tenant_id: 200.0, quick.tenant_id: 10.0}
        rules = conf.Rules(1, 1, 1, 1)
        monkeypatch.setattr(conf, "rules", lambda tenant: _with(rules, days[tenant.pk]))
        assert recall(*facts) == 2
        left = [Fact.objects.get(pk=fact.pk).forget_at for fact in facts]
        assert left == [NOW + timedelta(days=30 + 2 * number) for number in (200, 10)]

    def test_few_statements_for_many(self, person: EndUser) -> None:
        facts = [factories.fact(person, f"Number {number}", now=LONG_AGO) for number in range(40)]
        recalls.note("fact", [fact.pk for fact in facts], now=NOW)
        assert len(statements(lambda: recalls.flush(now=NOW))) == 4

    def test_an_outage_keeps_all_that_is_not_written(
        self, person: EndUser, buffer: Buffer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fact = factories.fact(person, now=LONG_AGO)
        recalls.note("fact", [fact.pk], now=NOW)
        with monkeypatch.context() as outage:
            outage.setattr(recalls, "_due", _away)
            with pytest.raises(OperationalError):
                recalls.flush(now=NOW)
            assert len(buffer) == 1
        assert recalls.flush(now=NOW + DAY) == 1
        fact.refresh_from_db()
        assert fact.last_recalled_at == NOW


@pytest.mark.django_db(transaction=True)
class TestRaces:
    def test_what_somebody_holds_waits_for_the_next_flush(self, buffer: Buffer) -> None:
        person = factories.end_user()
        taken, free = (factories.fact(person, text, now=LONG_AGO) for text in ("Likes tea", "Likes jazz"))
        with held(lambda: Fact.objects.select_for_update(no_key=True).get(pk=taken.pk)):
            assert recall(taken, free) == 1
            assert buffer.take() == {("fact", taken.pk): NOW}
            buffer.requeue({("fact", taken.pk): NOW})
        assert recalls.flush(now=NOW + timedelta(minutes=1)) == 1
        taken.refresh_from_db()
        assert taken.last_recalled_at == NOW

    def test_processes_that_flush_the_same_write_it_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        person = factories.end_user()
        facts = [factories.fact(person, f"Number {number}", now=LONG_AGO) for number in range(20)]
        waiting = {("fact", fact.pk): NOW for fact in facts}
        counts = at_once(4, lambda _: recalls._write("fact", [fact.pk for fact in facts], dict(waiting), now=NOW))
        assert sum(count for count in counts if isinstance(count, int)) == 20
        assert not [count for count in counts if isinstance(count, Exception)]

    def test_the_thread_writes_and_its_end_writes_the_rest(self, monkeypatch: pytest.MonkeyPatch) -> None:
        person = factories.end_user()
        first, last = (factories.fact(person, text, now=LONG_AGO) for text in ("Likes tea", "Likes jazz"))
        flushed = threading.Event()
        flush = recalls.flush

        def watched(*, now: datetime) -> int:
            try:
                return flush(now=now)
            finally:
                flushed.set()

        monkeypatch.setattr(recalls, "FLUSH_SECONDS", 0.001)
        monkeypatch.setattr(recalls, "flush", watched)
        flusher = RecallWriter()
        recalls.note("fact", [first.pk], now=NOW)
        flusher.start()
        assert flushed.wait(30)
        flusher._ended.set()
        flusher.join(30)
        recalls.note("fact", [last.pk], now=NOW)
        flusher.end()
        assert Fact.objects.filter(last_recalled_at=NOW).count() == 2

    def test_an_outage_ends_no_thread(self, buffer: Buffer, monkeypatch: pytest.MonkeyPatch) -> None:
        recalls.note("fact", [ONE], now=NOW)
        monkeypatch.setattr(recalls, "_due", _away)
        RecallWriter().once()
        assert len(buffer) == 1


def _away(*_args: Any, **_named: Any) -> Any:
    raise OperationalError


def _with(rules: conf.Rules, half_life_days: float) -> conf.Rules:
    return conf.Rules(**{**vars(rules), "half_life_days": half_life_days})
