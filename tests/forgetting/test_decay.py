"""The pass of forgetting: what it takes, what it leaves, the brake, the trash, and going on after a crash."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.forms.models import model_to_dict

from memories import audit, conf, invariants
from memories.audit import Actor
from memories.curation.change_sets import Changes
from memories.curation.facts.adding import FactDraft, add_fact
from memories.curation.facts.forgetting import forget_fact
from memories.exceptions import DecayRunning, LeaseLost
from memories.forgetting import decay, decay_passes, stored_scores
from memories.forgetting import trash as forgetting
from memories.models import (
    ActorKind,
    AuditEvent,
    DecayPass,
    EndUser,
    Episode,
    Fact,
    FactEvidence,
    FactRefusal,
    FactRevision,
    Status,
    Tenant,
)
from memories.queue import leases, nightly
from tests import factories
from tests.factories import COMMAND, NOW

DAY = timedelta(days=1)
LONG_AGO = NOW - timedelta(days=1_000)
YESTERDAY = NOW - DAY
KEY = Actor(kind=ActorKind.KEY)
TRIGGER = DecayPass.Trigger.COMMAND


@pytest.fixture
def person(tenant: Tenant) -> EndUser:
    return factories.end_user(tenant)


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forgetting, "STEP", 3)
    monkeypatch.setattr(stored_scores, "STEP", 2)


def forget(tenant: Tenant, now: datetime = NOW, *, confirm: bool = False) -> DecayPass:
    return decay.forget(tenant=tenant, now=now, trigger=TRIGGER, confirm=confirm)


def stated(person: EndUser, content: str, now: datetime = LONG_AGO) -> Fact:
    """With the revision that a real one begins with."""
    return add_fact(end_user=person, draft=FactDraft(content, "knowledge"), actor=KEY, now=now).row


def faded(person: EndUser, count: int) -> list[Fact]:
    return [factories.fact(person, f"Said once, number {number}", now=LONG_AGO) for number in range(count)]


def fresh(person: EndUser, count: int) -> list[Fact]:
    return [factories.fact(person, f"Said today, number {number}") for number in range(count)]


def status(fact: Fact) -> str:
    return Fact.objects.get(pk=fact.pk).status


class TestWhatGoes:
    def test_a_faded_fact_goes_to_the_trash_with_a_revision(self, person: EndUser) -> None:
        fact = stated(person, "Once had a bicycle")
        before = audit.snapshot(fact)
        done = forget(person.tenant)
        fact.refresh_from_db()
        assert (done.state, done.counts["facts"]) == ("done", 1)
        assert (fact.status, fact.trashed_at, fact.updated_at, fact.version) == ("trashed", NOW, NOW, 2)
        revision = FactRevision.objects.get(fact=fact, version=2)
        assert (revision.verb, revision.actor_kind, revision.actor_id) == ("fade", "decay", str(done.pk))
        assert (revision.change_set, revision.reason, revision.created_at) == (
            done.pk,
            "It did not come up again.",
            NOW,
        )
        assert revision.before == {"status": "active", "trashed_at": None}
        assert _moments(revision.after) == _moments(audit.snapshot(fact))
        assert before["status"] == "active"

    def test_every_field_of_a_revision_is_as_python_tells_it(self, person: EndUser) -> None:
        """The statement that writes it knows the columns by audit's own lists."""
        odd = LONG_AGO + timedelta(microseconds=100)
        fact = factories.fact(
            person, '"Ships" \\ with 北京 DHL', now=odd, category="correction", key="carrier", value="DHL", mentions=3,
            tags=["a b", "c"], structured={"at": [1, None, "x"]}, raw="ship it", source_error="UPS", confidence=0.7,
            agent_id="bot", allowed_users=["u"], allowed_roles=["r"], flags=["f"], expires_at=YESTERDAY, valid_to=odd,
        )  # fmt: skip
        forget(person.tenant)
        fact.refresh_from_db()
        assert _moments(fact.revisions.get().after) == _moments(audit.snapshot(fact))

    def test_which_facts_fade(self, person: EndUser) -> None:
        table: list[tuple[dict[str, Any], bool]] = [
            ({}, True),
            ({"pinned": True}, False),
            ({"locked": True}, False),
            ({"binding": True}, False),
            ({"category": "identity"}, False),
            ({"category": "relationship"}, False),
            ({"category": "constraint"}, False),
            ({"category": "correction"}, True),
            ({"last_recalled_at": YESTERDAY}, False),
            ({"last_confirmed_at": YESTERDAY}, False),
            ({"mentions": 1_000_000}, False),
            ({"status": Status.PENDING}, False),
            ({"status": Status.ARCHIVED}, False),
            ({"status": Status.REJECTED}, False),
        ]
        facts = [factories.fact(person, str(over), now=LONG_AGO, **over) for over, _ in table]
        forget(person.tenant)
        expected = ["trashed" if goes else fact.status for fact, (_, goes) in zip(facts, table, strict=True)]
        assert [status(fact) for fact in facts] == expected

    def test_which_facts_expire(self, person: EndUser) -> None:
        table: list[tuple[dict[str, Any], bool]] = [
            ({}, True),
            ({"status": Status.PENDING}, True),
            # No date of a person's own is overruled, but a job does not touch what is locked.
            ({"pinned": True}, True),
            ({"binding": True}, True),
            ({"locked": True}, False),
            ({"category": "identity"}, True),
            ({"expires_at": NOW}, True),
            ({"expires_at": NOW + timedelta(seconds=1)}, False),
            ({"status": Status.SUPERSEDED, "valid_to": YESTERDAY}, False),
        ]
        given = {"now": YESTERDAY - DAY, "expires_at": YESTERDAY}
        facts = [factories.fact(person, str(over), **{**given, **over}) for over, _ in table]
        assert forget(person.tenant).counts["expired"] == sum(goes for _, goes in table)
        for fact, (over, goes) in zip(facts, table, strict=True):
            assert status(fact) == ("trashed" if goes else fact.status), over
            said = [(one.verb, one.before["status"]) for one in fact.revisions.all()]
            assert said == [("expire", fact.status)] * goes, over

    def test_which_episodes_go(self, person: EndUser) -> None:
        table: list[tuple[dict[str, Any], bool]] = [
            ({}, True),
            ({"importance": 1.0, "last_recalled_at": YESTERDAY}, False),
            ({"pinned": True}, False),
            ({"binding": True}, False),
            ({"status": "pending"}, False),
            ({"now": NOW, "expires_at": YESTERDAY}, True),
        ]
        session = factories.session(person)
        episodes = [
            factories.episode(session, first_number=number, last_number=number, **{"now": LONG_AGO, **over})
            for number, (over, _) in enumerate(table, start=1)
        ]
        done = forget(person.tenant)
        assert done.counts["episodes"] + done.counts["expired"] == 2
        for before, (over, goes) in zip(episodes, table, strict=True):
            found = Episode.objects.get(pk=before.pk)
            assert (found.status, found.trashed_at) == (("trashed", NOW) if goes else (before.status, None)), over
            assert found.version == 1 + goes

    def test_an_episode_outlives_a_fact_of_its_importance(self, person: EndUser) -> None:
        """It goes below 0.1, a fact below 0.2: half a life later."""
        fact = factories.fact(person, importance=0.4)
        episode = factories.episode(factories.session(person), importance=0.4)
        assert fact.forget_at
        assert episode.forget_at
        assert episode.forget_at - fact.forget_at == timedelta(days=90)

    def test_another_tenants_memories_stay(self, person: EndUser) -> None:
        [other] = faded(factories.end_user(), 1)
        faded(person, 1)
        assert forget(person.tenant).counts["facts"] == 1
        assert status(other) == "active"

    def test_people_under_restriction_are_passed_over(self, tenant: Tenant) -> None:
        restricted = factories.end_user(tenant, restricted_at=YESTERDAY)
        [kept] = faded(restricted, 1)
        old = factories.fact(restricted, "In the trash", status=Status.TRASHED, trashed_at=LONG_AGO, decay_score=0.9)
        before = model_to_dict(kept), model_to_dict(old)
        [gone] = faded(factories.end_user(tenant), 1)
        done = forget(tenant)
        assert (status(gone), done.counts["facts"]) == ("trashed", 1)
        assert tuple(model_to_dict(Fact.objects.get(pk=fact.pk)) for fact in (kept, old)) == before

    def test_questions_about_what_goes_are_settled(self, person: EndUser) -> None:
        [gone] = faded(person, 1)
        pending = factories.fact(person, "Waits", status=Status.PENDING, expires_at=YESTERDAY)
        about = [
            factories.review_item(None, known=gone, kind="conflict", reason="removal"),
            factories.review_item(pending),
        ]
        stays = factories.review_item(factories.fact(person, "Waits on", status=Status.PENDING))
        done = forget(person.tenant)
        for item in about:
            item.refresh_from_db()
            assert (item.state, item.change_set, item.decided_at) == ("settled", done.pk, NOW)
        stays.refresh_from_db()
        assert stays.state == "open"


class TestSteps:
    @pytest.mark.usefixtures("small_steps")
    def test_many_go_in_bounded_steps(self, tenant: Tenant) -> None:
        people = [factories.end_user(tenant) for _ in range(3)]
        gone = [fact for person in people for fact in faded(person, 7)]
        stay = [fact for person in people for fact in fresh(person, 2)]
        done = forget(tenant)
        assert done.counts["facts"] == 21
        assert {status(fact) for fact in gone} == {"trashed"}
        assert {status(fact) for fact in stay} == {"active"}
        assert FactRevision.objects.count() == 21

    def test_twice_is_the_same_as_once(self, person: EndUser) -> None:
        faded(person, 2)
        fresh(person, 2)
        first = forget(person.tenant)
        before = list(Fact.objects.order_by("pk").values())
        second = forget(person.tenant)
        assert (first.counts["facts"], second.counts["facts"]) == (2, 0)
        assert list(Fact.objects.order_by("pk").values()) == before
        assert FactRevision.objects.count() == 2

    def test_late_is_the_same_as_every_night(self, person: EndUser) -> None:
        other = factories.end_user()
        for one in (person, other):
            for importance in (0.2, 0.25, 0.3, 0.5, 0.9):
                factories.fact(one, f"Weighs {importance}", importance=importance)
        nights = [NOW + number * DAY for number in range(0, 150, 15)]
        for night in nights:
            forget(person.tenant, night)
        forget(other.tenant, nights[-1])
        kept, gone = {"Weighs 0.5", "Weighs 0.9"}, {"Weighs 0.2", "Weighs 0.25", "Weighs 0.3"}
        for one in (person, other):
            active = Fact.objects.filter(end_user=one, status=Status.ACTIVE).values_list("content", flat=True)
            assert set(active) == kept
        assert set(Fact.objects.filter(end_user=other, status=Status.TRASHED).values_list("content", flat=True)) == gone


class TestBrake:
    @pytest.mark.parametrize(
        ("old", "new", "share", "count", "held"),
        [
            (3, 7, 0.2, 2, True),
            # As many as the brake allows, or fewer.
            (2, 8, 0.2, 1, False),
            (2, 1, 0.2, 2, False),
            (3, 3, 0.5, 2, False),
            (4, 3, 0.5, 3, True),
        ],
    )
    def test_more_than_a_share_and_a_count_is_held(
        self, person: EndUser, monkeypatch: pytest.MonkeyPatch, old: int, new: int, share: float, count: int, held: bool
    ) -> None:
        _numbers(monkeypatch, brake_share=share, brake_count=count)
        gone = faded(person, old)
        fresh(person, new)
        done = forget(person.tenant)
        assert done.state == ("held" if held else "done")
        assert {status(fact) for fact in gone} == {"active" if held else "trashed"}
        assert done.counts.get("held", 0) == (old if held else 0)

    def test_a_held_pass_takes_what_expired_and_empties_the_trash(
        self, person: EndUser, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        _numbers(monkeypatch, brake_count=1)
        gone = faded(person, 3)
        over = factories.fact(person, "Over", expires_at=YESTERDAY)
        factories.fact(person, "Old rubbish", status=Status.TRASHED, trashed_at=LONG_AGO)
        done = forget(person.tenant)
        assert done.state == "held"
        assert (done.counts["expired"], done.counts["purged"], done.counts["held"]) == (1, 1, 3)
        assert status(over) == "trashed"
        confirmed = forget(person.tenant, confirm=True)
        assert (confirmed.state, confirmed.counts["facts"]) == ("done", 3)
        assert {status(fact) for fact in gone} == {"trashed"}

    def test_what_expires_does_not_count(self, person: EndUser, monkeypatch: pytest.MonkeyPatch) -> None:
        _numbers(monkeypatch, brake_count=1)
        facts = [factories.fact(person, f"Number {number}", expires_at=YESTERDAY, now=LONG_AGO) for number in range(5)]
        assert forget(person.tenant).state == "done"
        assert {status(fact) for fact in facts} == {"trashed"}

    def test_held_night_after_night_it_takes_nothing(self, person: EndUser, monkeypatch: pytest.MonkeyPatch) -> None:
        _numbers(monkeypatch, brake_count=1)
        faded(person, 3)
        assert {forget(person.tenant, NOW + number * DAY).state for number in range(3)} == {"held"}
        assert Fact.objects.filter(status=Status.ACTIVE).count() == 3


class TestPreview:
    def test_it_says_what_the_pass_then_takes(self, person: EndUser, monkeypatch: pytest.MonkeyPatch) -> None:
        gone = [*faded(person, 3), factories.fact(person, "Older", now=LONG_AGO - DAY)]
        fresh(person, 2)
        factories.fact(person, "Over", expires_at=YESTERDAY)
        episode = factories.episode(factories.session(person), now=LONG_AGO)
        told = decay.preview(person.tenant, NOW)
        assert told.counts == {"facts": 4, "episodes": 1, "expired": 1}
        # What expired is active until a pass has taken it.
        assert (told.takes, told.memories, told.is_held) == (5, 8, False)
        assert told.facts[0] == gone[-1].pk
        assert (set(told.facts), told.episodes) == ({fact.pk for fact in gone}, [episode.pk])
        with monkeypatch.context() as few:
            few.setattr(decay, "EXAMPLES", 2)
            assert len(decay.preview(person.tenant, NOW).facts) == 2
        done = forget(person.tenant)
        assert {name: done.counts[name] for name in told.counts} == told.counts
        assert decay.preview(person.tenant, NOW).takes == 0

    def test_it_says_that_the_brake_will_hold_it(self, person: EndUser, monkeypatch: pytest.MonkeyPatch) -> None:
        faded(person, 3)
        assert not decay.preview(person.tenant, NOW).is_held
        _numbers(monkeypatch, brake_count=1)
        assert decay.preview(person.tenant, NOW).is_held


class TestPurge:
    def test_after_thirty_days_in_the_trash_nothing_is_left(self, person: EndUser) -> None:
        session = factories.session(person)
        fact = stated(person, "Once had a bicycle")
        factories.evidence(fact, session.turns.get(), "bicycle")
        forget_fact(fact_id=fact.pk, tenant=person.tenant, actor=COMMAND, now=NOW)
        factories.episode(session, status="trashed", trashed_at=NOW)
        soon = forget(person.tenant, NOW + timedelta(days=29, hours=23))
        assert (soon.counts["purged"], Fact.objects.count(), Episode.objects.count()) == (0, 1, 1)
        later = forget(person.tenant, NOW + timedelta(days=30))
        assert later.counts["purged"] == 2
        assert not any(model._default_manager.exists() for model in (Fact, Episode, FactRevision, FactEvidence))
        # What somebody forgot is refused for good.
        assert FactRefusal.objects.get().fact is None
        assert not invariants.check()

    def test_who_names_what_goes_names_nobody(self, person: EndUser) -> None:
        successor = stated(person, "Lives in Utrecht")
        older = stated(person, "Lives in Leiden")
        for fact in (older,):
            changes = Changes(actor=COMMAND, now=LONG_AGO)
            with changes.changing(fact, "supersede"):
                fact.status, fact.valid_to, fact.superseded_by = Status.SUPERSEDED, LONG_AGO, successor
        waits = stated(person, "Waits")
        Fact.objects.filter(pk=waits.pk).update(status=Status.PENDING)
        item = factories.review_item(waits, known=successor, kind="conflict", reason="less_sure")
        forget(person.tenant)
        assert forget(person.tenant, NOW + timedelta(days=31)).counts["purged"] == 1
        older.refresh_from_db()
        item.refresh_from_db()
        assert (older.status, older.superseded_by) == ("superseded", None)
        assert (item.state, item.known) == ("open", None)
        assert not invariants.check()

    def test_the_invariant_still_finds_a_successor_that_vanished(self, person: EndUser) -> None:
        older = stated(person, "Lives in Leiden")
        Fact.objects.filter(pk=older.pk).update(status=Status.SUPERSEDED, valid_to=NOW)
        assert [broken.name for broken in invariants.check()] == ["successors"]


class TestRefresh:
    def test_scores_are_kept_true_without_a_version(self, person: EndUser) -> None:
        fact = factories.fact(person, importance=0.8)
        episode = factories.episode(factories.session(person), importance=0.8)
        before = model_to_dict(fact)
        done = forget(person.tenant, NOW + timedelta(days=120))
        fact.refresh_from_db()
        episode.refresh_from_db()
        assert done.counts["refreshed"] == 2
        assert [fact.decay_score, episode.decay_score] == pytest.approx([0.4, 0.4])
        assert {name for name, value in model_to_dict(fact).items() if value != before[name]} == {"decay_score"}
        assert (fact.updated_at, fact.version, fact.revisions.count()) == (NOW, 1, 0)

    def test_what_is_near_enough_is_left_alone(self, person: EndUser) -> None:
        factories.fact(person, importance=0.8)
        assert forget(person.tenant, NOW + timedelta(days=31)).counts["refreshed"] == 0

    def test_a_date_that_a_crash_left_wrong_is_mended_before_anything_goes(self, person: EndUser) -> None:
        wrong, never = factories.fact(person, "Likes tea"), factories.fact(person, "Is Kim", category="identity")
        right = wrong.forget_at
        Fact.objects.update(forget_at=YESTERDAY)
        done = forget(person.tenant)
        assert (done.counts["refreshed"], done.counts["facts"]) == (2, 0)
        assert [Fact.objects.get(pk=fact.pk).forget_at for fact in (wrong, never)] == [right, None]

    def test_new_numbers_are_planned_for_all(self, tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
        people = [factories.end_user(tenant) for _ in range(5)]
        facts = [factories.fact(person, importance=0.8) for person in people]
        other = factories.fact(factories.end_user(), importance=0.8)
        monkeypatch.setattr(stored_scores, "STEP", 2)
        _numbers(monkeypatch, half_life_days=10.0)
        reached, slices = None, 0
        while reached := decay.refresh(tenant=tenant, now=NOW, reached=reached, seconds=0):
            slices += 1
        assert slices == 3
        dates = set(Fact.objects.filter(pk__in=[fact.pk for fact in facts]).values_list("forget_at", flat=True))
        assert dates == {NOW + timedelta(days=30 + 2 * 10)}
        other.refresh_from_db()
        assert other.forget_at == NOW + timedelta(days=30 + 2 * 90)


class TestCrash:
    @pytest.mark.usefixtures("small_steps")
    def test_a_pass_that_died_is_finished_by_the_next(self, tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
        people = [factories.end_user(tenant) for _ in range(3)]
        gone = [fact for person in people for fact in faded(person, 4)]
        _die_after(3, monkeypatch)
        with pytest.raises(Killed):
            forget(tenant)
        assert Fact.objects.filter(status=Status.TRASHED).count() == 6
        assert DecayPass.objects.get().state == "running"
        monkeypatch.undo()
        # Its lease holds: nobody knows yet that it died.
        with pytest.raises(DecayRunning):
            forget(tenant)
        DecayPass.objects.update(lease_until=NOW)
        done = forget(tenant, NOW + DAY)
        first = DecayPass.objects.exclude(pk=done.pk).get()
        assert (first.state, first.counts["facts"], first.as_of) == ("done", 12, NOW)
        assert (done.counts["facts"], done.as_of) == (0, NOW + DAY)
        assert {status(fact) for fact in gone} == {"trashed"}
        assert FactRevision.objects.count() == 12

    def test_a_confirmed_pass_goes_on_confirmed(self, person: EndUser, monkeypatch: pytest.MonkeyPatch) -> None:
        _numbers(monkeypatch, brake_count=1)
        faded(person, 3)
        row = decay_passes.begin(tenant=person.tenant, trigger=TRIGGER, as_of=NOW, now=NOW, confirmed=True)
        assert decay.run_slice(now=NOW, seconds=60) is False
        row.refresh_from_db()
        assert (row.state, row.counts["facts"]) == ("done", 3)

    @pytest.mark.usefixtures("small_steps")
    def test_a_pass_is_carried_on_in_slices(self, tenant: Tenant) -> None:
        for _ in range(3):
            faded(factories.end_user(tenant), 4)
        decay_passes.begin(tenant=tenant, trigger=TRIGGER, as_of=NOW, now=NOW)
        slices = 1
        while decay.run_slice(now=NOW, seconds=-1):
            slices += 1
            assert slices < 50
        assert slices > 5
        row = DecayPass.objects.get()
        assert (row.state, row.counts["facts"], row.counts["refreshed"]) == ("done", 12, 12)

    def test_who_lost_the_lease_writes_nothing(self, person: EndUser) -> None:
        faded(person, 1)
        row = decay_passes.begin(tenant=person.tenant, trigger=TRIGGER, as_of=NOW, now=NOW)
        late = decay_passes.claim(row)
        assert late
        assert decay_passes.claim(row) is None
        DecayPass.objects.update(lease_until=NOW)
        assert decay_passes.claim(row)
        with pytest.raises(LeaseLost):
            decay._work(late, now=NOW)
        assert Fact.objects.get().status == "active"

    def test_one_that_ends_its_workers_has_failed_and_the_next_one_begins(self, person: EndUser) -> None:
        faded(person, 1)
        row = decay_passes.begin(tenant=person.tenant, trigger=TRIGGER, as_of=NOW, now=NOW)
        # A step that is done counts: the worker of one step a claim is not given up.
        for _ in range(leases.MOST_ATTEMPTS):
            work = decay_passes.claim(row)
            assert work
            leases.renew(work)
            DecayPass.objects.update(lease_until=NOW)
        for _ in range(leases.MOST_ATTEMPTS):
            assert decay_passes.claim(row)
            DecayPass.objects.update(lease_until=NOW)
        done = forget(person.tenant)
        row.refresh_from_db()
        assert (row.state, row.failure, row.counts["facts"]) == ("failed", "worker_lost", 0)
        assert (done.state, done.counts["facts"]) == ("done", 1)
        trail = AuditEvent.objects.filter(object_id=row.pk).values_list("verb", "counts")
        assert list(trail) == [("fail", {"worker_lost": 1})]

    @pytest.mark.django_db
    def test_the_one_that_failed_last_comes_last(self) -> None:
        rows = [
            decay_passes.begin(tenant=factories.tenant(), trigger=TRIGGER, as_of=NOW, now=NOW + number * DAY)
            for number in range(3)
        ]
        DecayPass.objects.filter(pk=rows[0].pk).update(lease_until=NOW)
        assert nightly.unfinished(DecayPass.objects.open()) == [rows[1], rows[2], rows[0]]


def test_a_pass_leaves_counts_in_the_trail_and_nothing_else(person: EndUser) -> None:
    faded(person, 2)
    done = forget(person.tenant)
    event = AuditEvent.objects.get()
    assert (event.verb, event.object_type, event.object_id) == ("decay", "DecayPass", done.pk)
    assert (event.actor_kind, event.actor_id, event.tenant_uuid) == ("decay", str(done.pk), person.tenant_id)
    assert event.counts == done.counts
    assert done.finished_at == NOW
    assert set(map(type, done.counts.values())) == {int}


class TestNight:
    def test_each_tenant_once_a_day(self, tenant: Tenant) -> None:
        assert decay.begin_due(now=NOW) == 1
        tenant.refresh_from_db()
        assert (tenant.decayed_on, DecayPass.objects.get().trigger) == (NOW.date(), "schedule")
        assert decay.begin_due(now=NOW + timedelta(hours=1)) == 0
        # Yesterday's is not done: today's waits for it, and is not lost.
        assert decay.begin_due(now=NOW + DAY) == 0
        assert decay.run_slice(now=NOW + DAY, seconds=60) is False
        assert decay.begin_due(now=NOW + DAY) == 1
        tenant.refresh_from_db()
        assert tenant.decayed_on == (NOW + DAY).date()


class Killed(BaseException):
    """As by kill -9: nothing that the code does about errors."""


def _die_after(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Right after the commit of so many steps of taking."""
    trash = forgetting.trash

    def dying(*args: Any, **named: Any) -> Iterator[None]:
        for number, step in enumerate(trash(*args, **named), start=1):
            yield step
            if number == steps - 1:
                raise Killed

    monkeypatch.setattr(forgetting, "trash", dying)


def _numbers(monkeypatch: pytest.MonkeyPatch, **own: Any) -> None:
    rules = conf.Rules(**{**vars(conf.hub_rules()), **own})
    monkeypatch.setattr(conf, "rules", lambda _: rules)


def _moments(state: dict[str, Any]) -> dict[str, Any]:
    """With moments as such: PostgreSQL writes fewer digits of a second."""
    named = {name: datetime.fromisoformat(state[name]) for name in audit.REVISED_MOMENTS if state[name]}
    return state | named
