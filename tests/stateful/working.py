"""What the worker does: due sessions with a model that answers or fails, vectors, recalls, passes of forgetting."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from memories.capture.ingest import PostedMessage
from memories.curation.decay import confirm_decay
from memories.curation.retries import retry_extraction, retry_working_memory
from memories.embedding import vectors
from memories.episodes import compaction
from memories.extraction import consolidation
from memories.forgetting import decay
from memories.models import DecayPass, EndUser, Episode, ExtractionRun, Fact, FactRefusal, FactRevision, Session
from memories.models.folding import refusal_of_text
from memories.queue import circuit_breaker, session_queue, window_queue
from memories.retrieval import recalls
from tests.stateful.answers import FATES, HEALTHY, WELL, Fate, open_transactions
from tests.stateful.talking import SESSION, Talking
from tests.stateful.texts import PHRASES
from tests.stateful.world import NTH, WHO, of_person

# What an operator's word keeps, whoever works on it (I5).
KEPT = ("content", "category", "key", "value", "confidence", "importance", "binding", "pinned", "locked", "agent_id")
PAUSES = st.sampled_from(
    [{"seconds": 1}, {"seconds": 40}, {"minutes": 6}, {"minutes": 40}, {"days": 1}, {"days": 35}, {"days": 200}]
)
PASSES = ("braked", "braked", "confirmed", "what is held")
JOBS = ("run", "decay")
DRAIN_STEPS = 40


class Working(Talking):
    """Jobs, and what they may not do."""

    @initialize(first=WELL, second=WELL)
    def begin(self, first: Fate, second: Fate) -> None:
        """Something is known already of everybody."""
        for who, fate in ((0, first), (0, second), (1, first), (2, second)):
            self._learn(who, "monday", fate)
        self._work(window_queue.due_sessions, self._compact, HEALTHY)

    @rule(who=WHO, session=SESSION, fate=FATES)
    def learn(self, who: int, session: str, fate: Fate) -> None:
        """What is said, and what a model makes of it."""
        self._learn(who, session, fate)

    @rule(pause=PAUSES)
    def time_passes(self, pause: dict[str, int]) -> None:
        self.wait(**pause)

    @rule(fate=FATES, pause=st.sampled_from([1, 40, 400]))
    def extract(self, fate: Fate, pause: int) -> None:
        self.wait(seconds=pause)
        self._work(session_queue.due_sessions, self._consolidate, fate)

    @rule(fate=FATES, pause=st.sampled_from([1, 70, 2_000]))
    def compact(self, fate: Fate, pause: int) -> None:
        self.wait(seconds=pause)
        self._work(window_queue.due_sessions, self._compact, fate)

    @rule(work=st.sampled_from(["embed", "embed", "recalls", "endpoint"]))
    def work_in_background(self, work: str) -> None:
        with self.keeping_words():
            if work == "embed":
                self.do(vectors.embed_some)
            elif work == "recalls":
                self.do(recalls.flush, now=self.now)
            else:
                self.do(circuit_breaker.probe)

    @rule(tenant=st.sampled_from([0, 0, 2]), days=st.sampled_from([0, 35, 200]), how=st.sampled_from(PASSES))
    def forget(self, tenant: int, days: int, how: str) -> None:
        """After a while; by an operator's word over the brake, or not."""
        self.wait(days=days)
        if how == "what is held":
            self._confirm_what_is_held(tenant)
        else:
            self._forget(tenant, confirm=how == "confirmed")

    def _confirm_what_is_held(self, tenant: int) -> None:
        newest = DecayPass.objects.filter(tenant=self.people[tenant].row.tenant).first()
        if newest:
            self.wait()
            confirmed = self.do(confirm_decay, pass_id=newest.pk, actor=self.operator, now=self.now)
            with self.keeping_words():
                decay.run_slice(now=self.now, seconds=1_000)
            assert confirmed is None or DecayPass.objects.get(pk=confirmed.pk).state == DecayPass.PassState.DONE

    @rule(nth=NTH)
    def retry(self, nth: int) -> None:
        for run in ExtractionRun.objects.order_by("-started_at")[nth : nth + 1]:
            self.do(retry_extraction, run=run, actor=self.operator, now=self.now)
        for session in Session.objects.order_by("pk")[nth : nth + 1]:
            self.do(retry_working_memory, session=session, actor=self.operator, now=self.now)

    def drain(self) -> None:
        """A healthy model, and time: all that is due gets done, unless it is parked or its person restricted (I7)."""
        for _ in range(DRAIN_STEPS):
            self.wait(minutes=6)
            due = self._work(session_queue.due_sessions, self._consolidate, HEALTHY)
            due += self._work(window_queue.due_sessions, self._compact, HEALTHY)
            if not due:
                return
        raise AssertionError("what is due does not drain")

    def _learn(self, who: int, session: str, fate: Fate) -> None:
        said = [("user", PHRASES[0]), ("assistant", "notes it"), ("tool", "42"), ("user", PHRASES[5])]
        self._post(who, session, of_person([PostedMessage(*one) for one in said], self.people[who].marker), flush=True)
        self._work(session_queue.due_sessions, self._consolidate, fate)

    def _work(self, due: Callable[[int], list[Any]], job: Callable[[Session], None], fate: Fate) -> int:
        """Wake for what is due as the broker does, and do one job after the other; how many."""
        sessions = [Session.objects.get(pk=pk) for pk in due(20)]
        for session in sessions:
            who = [somebody.row.pk for somebody in self.people].index(session.end_user_id)
            self.model.fate, self.model.marker, self.model.calls = fate, self.people[who].marker, 0
            self.model.before_answering = self._witness(who)
            with self.keeping_words():
                job(session)
            assert self.model.calls <= 4
        return len(sessions)

    def _witness(self, who: int) -> Callable[[str], None]:
        """Sees each call: nothing of a stranger is in it (I3), and no transaction is open meanwhile."""
        depth = open_transactions()

        def watch(prompt: str) -> None:
            self.check_apart(who, prompt)
            assert open_transactions() == depth
            assert self.people[who].row.restricted_at is None

        return watch

    def _consolidate(self, session: Session) -> None:
        refused = self._refused(session.end_user)
        before = set(Fact.objects.filter(end_user=session.end_user, status="active").values_list("pk", flat=True))
        run = self.do(consolidation.consolidate, session_id=session.pk, now=self.now)
        assert run is None or run.calls <= 4
        born = Fact.objects.filter(end_user=session.end_user, status="active").exclude(pk__in=before)
        # What was turned down comes back to an operator's desk, never into a context (I5).
        assert [fact.content for fact in born if refusal_of_text(fact.content) in refused] == []

    def _compact(self, session: Session) -> None:
        self.do(compaction.compact, session_id=session.pk, now=self.now)

    def _refused(self, person: EndUser) -> set[bytes]:
        return {
            bytes(digest) for digest in FactRefusal.objects.filter(end_user=person).values_list("digest", flat=True)
        }

    def _forget(self, tenant: int, *, confirm: bool) -> None:
        owner = self.people[tenant].row.tenant
        self.wait()
        given: dict[str, Any] = {"tenant": owner, "now": self.now, "trigger": DecayPass.Trigger.COMMAND}
        with self.keeping_words():
            first = decay.forget(**given, confirm=confirm)
        state = _memories()
        second = decay.forget(**given, as_of=first.as_of, confirm=confirm)
        # Twice is once.
        assert _memories() == state
        assert second.state == first.state
        taken = ("expired", "purged", *(["facts", "episodes"] if first.state == DecayPass.PassState.DONE else []))
        assert [second.counts[name] for name in taken] == [0] * len(taken)

    @contextmanager
    def keeping_words(self) -> Iterator[None]:
        """Whatever job runs meanwhile: an operator's word stays as it was, and nothing changes of restricted people."""
        before = {fact.pk: fact for fact in Fact.objects.select_related("end_user")}
        seen = set(FactRevision.objects.values_list("pk", flat=True))
        yield
        for revision in FactRevision.objects.exclude(pk__in=seen).select_related("fact"):
            known = before.get(revision.fact_id)
            assert revision.actor_kind in JOBS
            assert known is None or known.end_user.restricted_at is None
            if known and known.protected:
                assert (revision.verb, known.locked) == ("expire", False)
                assert {name: getattr(revision.fact, name) for name in KEPT} == {
                    name: getattr(known, name) for name in KEPT
                }
        gone = set(before) - set(Fact.objects.values_list("pk", flat=True))
        assert [pk for pk in gone if before[pk].status != "trashed"] == []


def _memories() -> list[object]:
    rows: list[object] = list(Fact.objects.order_by("pk").values_list("pk", "status", "version", "forget_at"))
    return rows + list(Episode.objects.order_by("pk").values_list("pk", "status", "version", "forget_at"))
