"""Retention: what goes once its time is over, what stays all the same, and what stays true of the rest."""

from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.utils import timezone

from memories import audit, conf, invariants, tasks
from memories.context import context
from memories.embedding import spaces, vectors
from memories.exceptions import RetentionRunning
from memories.models import (
    AuditEvent,
    CaseState,
    DiaryEntry,
    EndUser,
    Episode,
    EpisodeVector,
    ExtractionRun,
    Fact,
    FactEvidence,
    FactRevision,
    PrivacyExport,
    RetentionPass,
    ReviewItem,
    Session,
    SessionQueue,
    Tenant,
    Trajectory,
    TrajectoryStep,
    Turn,
    TurnVector,
    WorkingMemory,
)
from memories.privacy import retention
from memories.privacy.expiry import records, turns
from memories.privacy.trail import chain_check, sealing
from memories.retrieval import search, turn_index
from memories.retrieval.hits import Finding
from memories.retrieval.search import SearchRequest
from tests import factories
from tests.factories import COMMAND
from tests.model import Model
from tests.privacy.retained import DAY, age, numbers_of, passes, post, retain, settle, sound, talk

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("ledger_apart")]


@pytest.fixture
def tenant() -> Tenant:
    return factories.tenant(keep_turns_days=30)


@pytest.fixture
def person(tenant: Tenant) -> EndUser:
    return factories.end_user(tenant)


@pytest.fixture
def session(model: Model, person: EndUser) -> Session:
    return talk(model, person)


def recall(person: EndUser) -> list[Finding]:
    """The two turns that answer best; with places taken by deleted ones, fewer."""
    asked = SearchRequest(user_id=person.external_id, query="user says", kinds=("turn",), limit=2)
    found = search.search(tenant=person.tenant, search=asked, now=timezone.now())
    return sorted(found.results, key=lambda one: one.turn_numbers, reverse=True)


class TestTurns:
    def test_old_ones_of_a_session_that_is_over_go_with_their_vectors_and_its_summary(self, session: Session) -> None:
        # The first makes the space.
        for _ in range(2):
            vectors.embed_some()
        assert TurnVector.objects.exists()
        WorkingMemory.objects.filter(pk=session.pk).update(summary="Said hello")
        age(session, 31)
        assert retention.preview(session.tenant, timezone.now())["turns"] == 8
        assert retain(session.tenant) == {"turns": 8}
        assert numbers_of(session) == []
        assert not TurnVector.objects.exists()
        session.refresh_from_db()
        assert (session.turn_count, session.deleted_number) == (8, 8)
        assert WorkingMemory.objects.get(pk=session.pk).summary == ""
        sound()
        assert retain(session.tenant) == {}

    def test_they_leave_the_ranking_that_a_process_keeps(self, model: Model, person: EndUser) -> None:
        session, whole = talk(model, person), talk(model, person, session_id="over")
        for _ in range(2):
            vectors.embed_some()
        space = spaces.serving()
        before = turn_index.open_index(person, space)
        assert (len(before), len(before.known)) == (16, 2)
        for one in (session, whole):
            age(one, 31)
        Turn.objects.filter(session=session, number__gt=6).update(created_at=timezone.now())
        retain(session.tenant)
        assert (numbers_of(session), numbers_of(whole)) == ([7, 8], [])
        after = turn_index.open_index(person, space)
        assert ([one.id for one in after.known], after.numbers.tolist()) == ([session.pk], [7, 8])
        [part] = after.parts
        assert part.rows.vectors
        assert (len(part.rows), part.rows.vectors.codes.tolist()) == (2, [1, 1])
        raw = part.rows.vectors.raw
        # What was deleted is not behind a view of it.
        assert len(raw if raw.base is None else raw.base) == 2
        [anew] = turn_index._grown(person, None, after.known, space).parts
        assert anew.rows.vectors
        assert np.array_equal(raw, anew.rows.vectors.raw)
        post(session, "user says 9")
        assert [found.turn_numbers for found in recall(person)] == [[9], [7]]

    def test_younger_ones_stay_and_for_ever_is_for_ever(self, session: Session) -> None:
        age(session, 29)
        assert retain(session.tenant) == {}
        assert len(numbers_of(session)) == 8
        # With the words that a fact has of them.
        assert FactEvidence.objects.get().quote == "user says 1"
        factories.set_numbers(session.tenant, keep_turns_days=0)
        age(session, 9_000)
        assert retain(session.tenant) == {}

    def test_of_an_open_session_those_go_that_have_left_the_window(self, model: Model, person: EndUser) -> None:
        session = talk(model, person, rounds=12)
        post(session, "still here")
        age(session, 31, up_to=24)
        window = WorkingMemory.objects.get(pk=session.pk)
        settle(model, session)
        Session.objects.filter(pk=session.pk).update(last_turn_at=timezone.now())
        window.refresh_from_db()
        assert 0 < window.left_number < 24
        told = retention.preview(session.tenant, timezone.now())
        assert (told["turns"], told["waiting"]) == (window.left_number, 24 - window.left_number)
        assert retain(session.tenant) == {"turns": window.left_number}
        assert numbers_of(session) == list(range(window.left_number + 1, 26))
        sound()

    def test_what_is_not_extracted_waits(self, model: Model, person: EndUser) -> None:
        session = factories.session(person, [("user", "Hello"), ("assistant", "Hi")])
        age(session, 100)
        told = retention.preview(session.tenant, timezone.now())
        assert (told["turns"], told["waiting"]) == (0, 2)
        assert retain(session.tenant) == {}
        settle(model, session)
        age(session, 100)
        assert retain(session.tenant)["turns"] == 2

    def test_what_is_parked_waits(self, session: Session) -> None:
        age(session, 100)
        SessionQueue.objects.filter(pk=session.pk).update(parked_at=timezone.now(), extracted_number=2)
        assert retain(session.tenant) == {}

    def test_numbers_are_given_once(self, session: Session, model: Model) -> None:
        age(session, 31)
        retain(session.tenant)
        post(session, "back again", "and again")
        assert numbers_of(session) == [9, 10]
        sound()
        settle(model, session)
        sound()
        assert len(Fact.objects.filter(end_user=session.end_user)) == 1

    def test_contexts_go_on(self, session: Session) -> None:
        age(session, 31)
        retain(session.tenant)
        request = context.ContextRequest(
            user_id=session.end_user.external_id,
            session_id=session.external_id,
            include=frozenset({"facts", "working_memory"}),
            query="What was said?",
        )
        told = context.build(tenant=session.tenant, request=request, now=timezone.now())
        assert "Leiden" in told.memory
        assert "says" not in told.memory
        assert told.messages
        assert [message["role"] for message in told.messages] == ["system"]

    def test_a_session_is_looked_at_again_once_its_first_turn_is_too_old(self, session: Session) -> None:
        age(session, 31)
        Turn.objects.filter(number__gt=4).update(created_at=timezone.now())
        cutoff = timezone.now() - timedelta(days=30)
        assert turns._next_sessions(session.tenant, cutoff, None) == [session.pk]
        retain(session.tenant)
        assert Turn.objects.earliest("number").number == 5
        assert turns._next_sessions(session.tenant, cutoff, None) == []
        Turn.objects.filter(number=5).update(created_at=cutoff - timedelta(days=1))
        assert turns._next_sessions(session.tenant, cutoff, None) == [session.pk]

    def test_many_go_in_steps(self, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(turns, "STEP", 3)
        age(session, 31)
        assert retain(session.tenant) == {"turns": 8}
        sound()


class TestFacts:
    def test_they_stay_with_where_they_come_from_and_without_the_words(self, session: Session) -> None:
        fact = Fact.objects.get()
        fact.raw = "user says 1"
        fact.save()
        revision = fact.revisions.get()
        revision.after = {**revision.after, "raw": "user says 1"}
        revision.save()
        before = Fact.objects.values("status", "trust", "confidence", "content", "extraction", "version").get()
        age(session, 31)
        retain(session.tenant)
        assert Fact.objects.values("status", "trust", "confidence", "content", "extraction", "version").get() == before
        cited = FactEvidence.objects.get()
        assert (cited.session_id, cited.turn_number, cited.turn_id, cited.quote) == (session.pk, 1, None, "")
        assert Fact.objects.get().raw == ""
        assert FactRevision.objects.get().after["raw"] == ""
        sound()

    def test_other_words_of_theirs_stay(self, session: Session) -> None:
        Fact.objects.update(raw="in an operator's words")
        age(session, 31)
        retain(session.tenant)
        assert Fact.objects.get().raw == "in an operator's words"


@pytest.mark.parametrize("left", [None, FactEvidence, Episode, ExtractionRun])
def test_a_session_goes_once_nothing_rests_on_it(session: Session, left: Any) -> None:
    for model in {FactEvidence, Episode, ExtractionRun} - {left}:
        model._default_manager.all().delete()
    age(session, 31)
    if left:
        assert retain(session.tenant) == {"turns": 8}
        left.objects.all().delete()
        assert retain(session.tenant) == {"sessions": 1}
    else:
        assert retain(session.tenant) == {"turns": 8, "sessions": 1}
    assert not Session.objects.exists()
    assert not SessionQueue.objects.exists()


class TestEpisodes:
    def test_old_ones_go_with_their_vectors_and_questions(self, person: EndUser, session: Session) -> None:
        factories.set_numbers(person.tenant, keep_episodes_days=30)
        age(session, 31)
        young = factories.episode(session, now=timezone.now(), first_number=9, last_number=9, pinned=True)
        factories.poor_episode(session, first_number=10, last_number=10)
        Episode.objects.filter(first_number=10).update(ended_at=timezone.now() - 31 * DAY, pinned=True)
        assert retention.preview(person.tenant, timezone.now())["episodes"] == 2
        assert retain(person.tenant)["episodes"] == 2
        assert list(Episode.objects.values_list("pk", flat=True)) == [young.pk]
        assert not ReviewItem.objects.exists()
        assert not EpisodeVector.objects.exists()


class TestRuns:
    def test_old_ones_go_and_what_they_made_stays(self, session: Session) -> None:
        factories.set_numbers(session.tenant, keep_turns_days=0, keep_runs_days=30)
        age(session, 31)
        assert retention.preview(session.tenant, timezone.now())["runs"] == 1
        assert retain(session.tenant) == {"runs": 1}
        fact = Fact.objects.get()
        assert (fact.extraction_id, fact.status) == (None, "active")
        assert len(numbers_of(session)) == 8
        sound()

    def test_the_guard_would_see_turns_without_a_run(self, session: Session) -> None:
        ExtractionRun.objects.all().delete()
        assert [broken.name for broken in invariants.check()] == ["turns_covered"]

    def test_one_under_way_stays(self, session: Session) -> None:
        factories.set_numbers(session.tenant, keep_runs_days=30)
        age(session, 29)
        factories.run(session, status="running", started_at=timezone.now() - 31 * DAY)
        assert retain(session.tenant) == {}


class TestAudit:
    @pytest.fixture
    def tenant(self) -> Tenant:
        return factories.tenant(keep_audit_days=90)

    def record(self, tenant: Tenant | None, days: float) -> AuditEvent:
        now = timezone.now() - timedelta(days=days)
        owner = tenant or factories.tenant()
        return audit.record(actor=COMMAND, verb="edit", target=owner, object_id=owner.pk, tenant=tenant, now=now)

    def seal(self) -> None:
        sealing.seal(now=timezone.now(), seconds=60.0, wait_seconds=0.0)

    def test_old_seals_lose_their_events_and_the_chain_holds(self, tenant: Tenant) -> None:
        for days in (200, 150, 91, 10):
            self.record(tenant, days)
            self.record(None, days)
            self.seal()
        assert retention.preview(tenant, timezone.now())["audit"] == 3
        assert retain(tenant) == {"audit": 3}
        left = AuditEvent.objects.filter(tenant_uuid=tenant.pk).order_by("pk")
        assert [event.verb for event in left] == ["edit", "retain"]
        report = chain_check.check(tenant.pk)
        assert (report.pruned, report.sealed, report.broken) == (3, 4, None)
        assert chain_check.check(None).broken is None
        assert AuditEvent.objects.filter(tenant_uuid=None).count() == 4
        self.seal()
        assert chain_check.check(tenant.pk).broken is None
        assert retain(tenant) == {}

    def test_in_steps(self, tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(records, "SEALS", 2)
        for _ in range(5):
            self.record(tenant, 100)
            self.seal()
        assert retain(tenant) == {"audit": 5}
        report = chain_check.check(tenant.pk)
        assert (report.pruned, report.links, report.broken) == (5, 8, None)

    def test_what_is_not_sealed_stays(self, tenant: Tenant) -> None:
        self.record(tenant, 100)
        assert retain(tenant) == {}

    def test_a_seal_with_a_younger_event_stays(self, tenant: Tenant) -> None:
        self.record(tenant, 100)
        self.record(tenant, 10)
        self.seal()
        assert retain(tenant) == {}

    def test_what_comes_back_after_pruning_shows(self, tenant: Tenant) -> None:
        event = self.record(tenant, 100)
        self.seal()
        retain(tenant)
        event.save(force_insert=True)
        broken = chain_check.check(tenant.pk).broken
        assert broken
        assert (broken.flaw, broken.event_id) == (chain_check.ChainFlaw.INSERTED, event.pk)

    def test_a_successor_whose_deletion_was_pruned_is_no_broken_invariant(self, tenant: Tenant) -> None:
        long_ago = timezone.now() - 200 * DAY
        fact = factories.fact(factories.end_user(tenant), status="superseded", valid_to=long_ago, now=long_ago)
        audit.record(actor=COMMAND, verb="delete", target=fact, object_id=fact.pk, tenant=tenant, now=long_ago + DAY)
        assert "successors" not in {broken.name for broken in invariants.check()}
        self.seal()
        assert retain(tenant) == {"audit": 1}
        assert "successors" not in {broken.name for broken in invariants.check()}


class TestExports:
    @pytest.mark.parametrize(("days", "expires", "state"), [(8, 9, "expired"), (6, 1, "ready"), (1, -1, "expired")])
    def test_what_nobody_downloaded_goes(self, person: EndUser, days: int, expires: int, state: str) -> None:
        now = timezone.now()
        case = factories.privacy_case(person, type="access", state="completed")
        export = factories.privacy_export(case, made_at=now - days * DAY, expires_at=now + expires * DAY)
        export.token_digest = b"d" * 32
        export.save()
        assert retention.preview(person.tenant, now)["exports"] == int(state == "expired")
        retain(person.tenant)
        export = PrivacyExport.objects.get()
        assert export.state == state
        assert export.pieces.exists() is (state == "ready")


class TestDiary:
    def test_old_entries_go_and_those_of_restricted_people_stay(self, tenant: Tenant, person: EndUser) -> None:
        factories.set_numbers(tenant, keep_turns_days=0, keep_diary_days=30)
        limited = factories.end_user(tenant, restricted_at=timezone.now())
        young = factories.diary_entry(person, created_at=timezone.now() - 29 * DAY)
        for owner, trashed_at in ((person, None), (person, timezone.now()), (limited, None)):
            factories.diary_entry(owner, created_at=timezone.now() - 31 * DAY, trashed_at=trashed_at)
        assert retention.preview(tenant, timezone.now())["diary"] == 2
        assert retain(tenant) == {"diary": 2}
        assert list(DiaryEntry.objects.filter(end_user=person)) == [young]
        assert DiaryEntry.objects.filter(end_user=limited).count() == 1


class TestTrajectories:
    def test_those_without_a_step_since_go_with_their_steps(self, tenant: Tenant, person: EndUser) -> None:
        factories.set_numbers(tenant, keep_turns_days=0, keep_trajectories_days=30)
        limited, old = factories.end_user(tenant, restricted_at=timezone.now()), timezone.now() - 31 * DAY
        lively = factories.trajectory(person, created_at=old, updated_at=timezone.now() - 29 * DAY)
        for owner in (person, person, limited):
            factories.trajectory(owner, created_at=old, updated_at=old)
        assert retention.preview(tenant, timezone.now())["trajectories"] == 2
        assert retain(tenant) == {"trajectories": 2}
        assert list(Trajectory.objects.filter(end_user=person)) == [lively]
        assert Trajectory.objects.filter(end_user=limited).count() == 1
        assert set(TrajectoryStep.objects.values_list("trajectory__end_user", flat=True)) == {person.pk, limited.pk}


class TestSpared:
    """Restricted people and people on legal hold, for every kind of what goes."""

    @pytest.fixture
    def tenant(self) -> Tenant:
        return factories.tenant(keep_turns_days=30, keep_episodes_days=30, keep_runs_days=30)

    @pytest.mark.parametrize("reason", ["restricted", "held", "closed", "nothing"])
    def test_they_are_passed_over(self, model: Model, person: EndUser, session: Session, reason: str) -> None:
        age(session, 31)
        if reason == "restricted":
            EndUser.objects.filter(pk=person.pk).update(restricted_at=timezone.now())
        if reason == "held":
            hold = {"held_from": "received", "held_at": timezone.now(), "hold_review_on": timezone.now().date()}
            factories.privacy_case(person, state=CaseState.ON_HOLD, **hold)
        if reason == "closed":
            factories.privacy_case(person, state=CaseState.REFUSED)
        told = retention.preview(person.tenant, timezone.now())
        done = retain(person.tenant)
        spared = reason in ("restricted", "held")
        assert any(told.values()) is not spared
        assert done == ({} if spared else {"turns": 8, "episodes": 1, "runs": 1})


class TestNight:
    def begin(self, now: Any) -> int:
        return retention.begin_due(now=now)

    def test_a_pass_begins_after_that_of_forgetting(self, session: Session) -> None:
        age(session, 31)
        tenant, now = session.tenant, timezone.now().replace(hour=5)
        assert self.begin(now) == 0
        Tenant.objects.update(decayed_on=now.date())
        row = factories.decay_pass(tenant, state="running")
        assert self.begin(now) == 0
        row.delete()
        assert (self.begin(now), self.begin(now)) == (1, 0)
        assert retention.run_slice(now=now, seconds=60.0) is False
        [done] = passes()
        assert (done.trigger, done.counts["turns"]) == ("schedule", 8)
        event = AuditEvent.objects.get(verb="retain")
        assert (event.counts, event.actor_id) == ({"turns": 8}, str(done.pk))
        assert self.begin(now + DAY) == 0

    def test_a_night_with_nothing_to_do_leaves_no_row(self, session: Session) -> None:
        now = timezone.now().replace(hour=5)
        Tenant.objects.update(decayed_on=now.date())
        assert self.begin(now) == 0
        session.tenant.refresh_from_db()
        assert session.tenant.retained_on == now.date()

    def test_a_worker_goes_on_where_another_stopped(self, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
        factories.set_numbers(session.tenant, keep_episodes_days=30, keep_runs_days=30)
        monkeypatch.setattr(turns, "STEP", 3)
        age(session, 31)
        retention.run(tenant=session.tenant, actor=COMMAND, now=timezone.now())
        slices = 0
        while retention.run_slice(now=timezone.now(), seconds=-1.0):
            slices += 1
        [done] = passes()
        assert slices >= 5
        assert {name: count for name, count in done.counts.items() if count} == {"turns": 8, "episodes": 1, "runs": 1}
        sound()

    def test_the_task(self, session: Session) -> None:
        age(session, 31)
        retention.run(tenant=session.tenant, actor=COMMAND, now=timezone.now())
        tasks.retain()
        assert passes()[0].finished_at

    def test_one_pass_at_a_time(self, tenant: Tenant) -> None:
        retention.run(tenant=tenant, actor=COMMAND, now=timezone.now())
        with pytest.raises(RetentionRunning):
            retention.run(tenant=tenant, actor=COMMAND, now=timezone.now())
        assert retain(tenant) == {}
        assert RetentionPass.objects.filter(finished_at=None).count() == 0


def test_another_tenant_is_left_alone(model: Model, session: Session) -> None:
    other = talk(model, factories.end_user(factories.tenant()))
    for one in (session, other):
        age(one, 31)
    retain(session.tenant)
    assert (len(numbers_of(session)), len(numbers_of(other))) == (0, 8)


def test_each_number_takes_for_ever_or_a_sensible_span() -> None:
    for name in ("turns", "episodes", "runs", "audit"):
        number = conf.NUMBERS[f"keep_{name}_days"]
        assert number.takes(0)
        assert not number.takes(1)
        assert number.takes(365)
    assert not conf.NUMBERS["keep_exports_days"].takes(0)
