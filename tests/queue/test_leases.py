"""What every lease promises, whatever it is on: session, window, decay pass, upkeep, retention pass, dry run of a
content policy, import, privacy case.

Another process is another connection; that time passes is written into the row.
"""

import os
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django_q.models import OrmQ

from memories import reminding
from memories.attachments import reading
from memories.curation import policy_trials
from memories.curation.imports import verbs
from memories.curation.skills import proposing
from memories.dream import dreaming
from memories.exceptions import LeaseLost
from memories.forgetting import decay, decay_passes, upkeep
from memories.imports import working
from memories.jobs import watchdog
from memories.models import (
    Attachment,
    DecayPass,
    Dream,
    Import,
    OperatorMail,
    PolicyTrial,
    PrivacyCase,
    RetentionPass,
    Session,
    SessionQueue,
    SkillPass,
    WebhookDelivery,
    WorkingMemory,
)
from memories.privacy import case_leases, reminders, retention
from memories.privacy.expiry import passes as retention_passes
from memories.queue import leases, queue_rows, session_queue, window_queue
from memories.queue.retry_policy import RetryDecision
from memories.webhooks import delivering
from tests import factories
from tests.database import at_once, elsewhere, held
from tests.factories import NOW
from tests.forgetting.upkeeping import passed

SECOND = timedelta(seconds=1)
MOST = 5


class Kind:
    """Rows of one kind: how one comes to wait for work, and how it is claimed."""

    model: type[Any]
    # What else a row needs to be due once more.
    due: dict[str, Any] = {}
    claims: Callable[[Any], Any]
    # The task that looks for them; none for those that the broker sweeps.
    looked_for_by = ""

    def make(self) -> Any:
        """A row that waits for a worker."""
        raise NotImplementedError

    def claim(self, row: Any) -> Any:
        return type(self).claims(self.read(row))

    def read(self, row: Any) -> Any:
        return self.model._default_manager.get(pk=row.pk)

    def write(self, row: Any, **values: Any) -> None:
        self.model._default_manager.filter(pk=row.pk).update(**values)

    def let_pass(self, row: Any) -> None:
        """The lease, or the pause, has run out."""
        self.write(row, lease_until=Now() - SECOND, **self.due)

    def fail(self, lease: Any) -> None:
        """The attempt failed, and the row rests for a while."""
        raise NotImplementedError

    def ended(self, row: Any) -> Any:
        """What a row says whose attempts are used up."""
        raise NotImplementedError


class Sessions(Kind):
    model: type[Any] = SessionQueue
    due = {"due_at": Now() - SECOND}
    claims: Callable[[Any], Any] = staticmethod(lambda row: session_queue.claim(row.pk))

    def make(self) -> Any:
        session = factories.session(factories.end_user(), [("user", "I live in Leiden"), ("assistant", "Noted")])
        self.write(session, **self.due)
        return self.read(session)

    def fail(self, lease: Any) -> None:
        queue_rows.postpone(lease, RetryDecision("model_timeout"), now=NOW)

    def ended(self, row: Any) -> Any:
        return row.parked_at is not None and row.due_at is None


class Windows(Sessions):
    model = WorkingMemory
    claims = staticmethod(lambda row: window_queue.claim(row.pk))

    def make(self) -> Any:
        row = super().make()
        Session.objects.filter(pk=row.pk).update(ended_at=Now())
        return row

    def fail(self, lease: Any) -> None:
        queue_rows.postpone(lease, RetryDecision("model_timeout"), now=NOW)


class Decays(Kind):
    model: type[Any] = DecayPass
    claims: Callable[[Any], Any] = staticmethod(decay_passes.claim)
    looked_for_by = decay.FORGET_TASK

    def make(self) -> Any:
        trigger = DecayPass.Trigger.COMMAND
        return decay_passes.begin(tenant=factories.tenant(), trigger=trigger, as_of=NOW, now=NOW)

    def fail(self, lease: Any) -> None:
        leases.release(lease, pause=60 * SECOND, failure="database", attempts=1)

    def ended(self, row: Any) -> Any:
        return row.state == "failed" and row.finished_at is not None


class Upkeeps(Decays):
    claims = staticmethod(upkeep.claim)
    looked_for_by = upkeep.UPKEEP_TASK

    def make(self) -> Any:
        row = passed(factories.end_user())
        with transaction.atomic():
            upkeep.begin(row)
        return row

    def ended(self, row: Any) -> Any:
        return row.state == "done" and not row.upkeep_open


class Retentions(Decays):
    model = RetentionPass
    claims = staticmethod(retention_passes.claim)
    looked_for_by = retention.TASK

    def make(self) -> Any:
        trigger = DecayPass.Trigger.COMMAND
        return retention_passes.begin(tenant=factories.tenant(), trigger=trigger, as_of=NOW, now=NOW)

    def ended(self, row: Any) -> Any:
        return row.finished_at is not None


class Trials(Decays):
    model = PolicyTrial
    claims = staticmethod(lambda row: policy_trials._claim(row.pk))
    looked_for_by = policy_trials.TASK

    def make(self) -> Any:
        return policy_trials.start_trial(tenant=factories.tenant(), given=[], actor=factories.COMMAND, now=NOW)

    def ended(self, row: Any) -> Any:
        return row.ended_at is not None


class Imports(Decays):
    model = Import
    claims = staticmethod(lambda row: working.claim(row.pk))
    looked_for_by = verbs.TASK

    def make(self) -> Any:
        return factories.uploaded(factories.tenant())

    def fail(self, lease: Any) -> None:
        working._retry(lease, "database")


class Cases(Kind):
    model = PrivacyCase
    claims = staticmethod(lambda row: case_leases.claim(row.pk))
    looked_for_by = case_leases.RUN_TASK

    def make(self) -> Any:
        return factories.privacy_case(factories.end_user(), state="approved")

    def fail(self, lease: Any) -> None:
        case_leases.retry_or_fail(lease, "database")

    def ended(self, row: Any) -> Any:
        return row.state == "failed"


class Dreams(Kind):
    model = Dream
    claims = staticmethod(dreaming.claim)
    looked_for_by = dreaming.TASK

    def make(self) -> Any:
        return factories.dream(factories.end_user(), state="running", finished_at=None)


class Deliveries(Kind):
    model = WebhookDelivery
    claims = staticmethod(lambda row: delivering.claim(row.pk))
    looked_for_by = delivering.TASK

    def make(self) -> Any:
        endpoint = factories.webhook(factories.tenant())
        return factories.webhook_delivery(endpoint, state="waiting", failure="", status=None, ended_at=None)


class Mails(Kind):
    model = OperatorMail
    claims = staticmethod(lambda row: next(reminding._claimed(), None))
    looked_for_by = reminders.TASK

    def make(self) -> Any:
        kind = OperatorMail.Kind.LONG_QUEUE
        return OperatorMail.objects.create(operator=factories.operator(), kind=kind, once="once", created_at=NOW)


class Files(Kind):
    model = Attachment
    claims = staticmethod(lambda row: reading.claim(row.pk))
    looked_for_by = reading.TASK

    def make(self) -> Any:
        return factories.attachment(factories.session(factories.end_user(), [("user", "Read this")]).turns.get())


class SkillPasses(Kind):
    model = SkillPass
    claims = staticmethod(proposing._claim)
    looked_for_by = proposing.TASK

    def make(self) -> Any:
        return proposing.begin(factories.tenant(skills=True), "bake bread", now=NOW)


KINDS = [Sessions, Windows, Decays, Upkeeps, Retentions, Trials, Imports, Cases]
# They count their attempts in ways of their own.
OTHER_KINDS = [Dreams, Deliveries, Mails, Files, SkillPasses]

# What is the same for all kinds, once for a kind that the broker sweeps and once for one that a task looks for.
OF_TWO_KINDS = pytest.mark.parametrize("kind", [Sessions, Decays], indirect=True, ids=["sessions", "decays"])


@pytest.fixture(params=KINDS, ids=lambda kind: str(kind.__name__).lower())
def kind(request: Any, settings: Any) -> Kind:
    settings.MEMORYHUB_LLM, settings.MEMORYHUB_MAX_ATTEMPTS = "scripted", MOST
    return request.param()  # type: ignore[no-any-return]


@pytest.fixture
def row(kind: Kind, transactional_db: None) -> Any:
    return kind.make()


def claimed(kind: Kind, row: Any) -> Any:
    lease = kind.claim(row)
    assert lease
    return lease


def test_of_two_claims_at_once_one_wins(kind: Kind, row: Any) -> None:
    outcomes = at_once(2, lambda _: kind.claim(row))
    assert not [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    [winner] = [outcome for outcome in outcomes if isinstance(outcome, leases.Lease)]
    now = kind.read(row)
    assert (now.lease_token, now.attempts) == (winner.token, 1)


def test_a_claim_does_not_wait_for_who_holds_the_row(kind: Kind, row: Any) -> None:
    with held(lambda: kind.model._default_manager.select_for_update().get(pk=row.pk)):
        assert kind.claim(row) is None
    assert kind.claim(row)


def test_a_claim_and_its_attempt_are_committed_before_the_work(kind: Kind, row: Any) -> None:
    lease = claimed(kind, row)
    there = elsewhere(lambda: kind.read(row))
    assert (there.lease_token, there.attempts) == (lease.token, 1)
    # Its worker may be dead: on another machine nobody knows that before the lease runs out.
    assert elsewhere(lambda: kind.claim(row)) is None
    kind.let_pass(row)
    assert elsewhere(lambda: kind.claim(row))


@OF_TWO_KINDS
def test_who_was_taken_over_writes_nothing_more(kind: Kind, row: Any) -> None:
    late = claimed(kind, row)
    kind.let_pass(row)
    # As long as nobody else came, being late does no harm.
    leases.renew(late)
    kind.let_pass(row)
    lease = claimed(kind, row)
    with pytest.raises(LeaseLost):
        leases.renew(late)
    with pytest.raises(LeaseLost), transaction.atomic():
        leases.fence(late)
    with pytest.raises(LeaseLost):
        leases.release(late)
    assert kind.read(row).lease_token == lease.token
    with transaction.atomic():
        assert leases.fence(lease).pk == row.pk


@OF_TWO_KINDS
def test_a_renewal_prolongs_the_lease(kind: Kind, row: Any) -> None:
    lease = claimed(kind, row)
    kind.let_pass(row)
    leases.renew(lease)
    assert kind.claim(row) is None


def test_a_row_that_kills_its_worker_is_given_up(kind: Kind, row: Any) -> None:
    for attempt in range(MOST):
        claimed(kind, row)
        assert kind.read(row).attempts == attempt + 1
        kind.let_pass(row)
    assert kind.claim(row) is None
    given_up = kind.read(row)
    assert kind.ended(given_up)
    assert (given_up.failure, given_up.lease_token) == ("worker_lost", None)
    kind.write(row, lease_until=Now() - SECOND)
    assert kind.claim(row) is None


def test_after_a_failure_it_rests(kind: Kind, row: Any) -> None:
    lease = claimed(kind, row)
    kind.fail(lease)
    resting = kind.read(row)
    assert (resting.lease_token, resting.attempts) == (None, 1)
    assert resting.failure in ("database", "model_timeout")
    assert kind.claim(row) is None
    with pytest.raises(LeaseLost):
        leases.renew(lease)
    kind.let_pass(row)
    claimed(kind, row)
    assert kind.read(row).attempts == 2


@OF_TWO_KINDS
def test_a_release_lets_the_next_one_go_on_at_once(kind: Kind, row: Any) -> None:
    leases.release(claimed(kind, row), attempts=0)
    now = kind.read(row)
    assert (now.lease_token, now.lease_until, now.attempts) == (None, None, 0)
    assert kind.claim(row)


@OF_TWO_KINDS
def test_a_revoked_lease_is_lost(kind: Kind, row: Any) -> None:
    lease = claimed(kind, row)
    assert leases.revoke(kind.model._default_manager.filter(pk=row.pk)) == 1
    with pytest.raises(LeaseLost):
        leases.renew(lease)
    with pytest.raises(LeaseLost), transaction.atomic():
        leases.fence(lease)
    assert kind.claim(row)


@contextmanager
def living() -> Iterator[uuid.UUID]:
    """The token of another process of this machine, which lives during the block."""
    told, tells = os.pipe()
    ends, end = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(end)
        os.write(tells, leases.new_token().bytes)
        os.read(ends, 1)
        os._exit(0)
    try:
        yield uuid.UUID(bytes=os.read(told, 16))
    finally:
        os.close(end)
        os.waitpid(process, 0)
        for descriptor in (told, tells, ends):
            os.close(descriptor)


def token_of_the_dead() -> uuid.UUID:
    """As a process of this machine made it that has ended."""
    read_end, write_end = os.pipe()
    process = os.fork()
    if process == 0:
        os.write(write_end, leases.new_token().bytes)
        os._exit(0)
    os.waitpid(process, 0)
    with os.fdopen(read_end, "rb") as told:
        os.close(write_end)
        return uuid.UUID(bytes=told.read())


@pytest.mark.skipif(not Path("/proc/self/ns/pid").is_symlink(), reason="tokens tell their processes on Linux alone")
class TestOrphaned:
    """Leases of processes that are gone end at once, and no others."""

    @pytest.fixture(params=[*KINDS, *OTHER_KINDS], ids=lambda kind: str(kind.__name__).lower())
    def kind(self, request: Any, settings: Any) -> Kind:
        settings.MEMORYHUB_LLM = "scripted"
        return request.param()  # type: ignore[no-any-return]

    @pytest.fixture
    def lease(self, kind: Kind, row: Any) -> Any:
        """Its worker died in the middle of its first attempt."""
        lease = claimed(kind, row)
        lease.token = token_of_the_dead()
        kind.write(row, lease_token=lease.token)
        return lease

    def test_the_next_one_takes_over_at_once(self, kind: Kind, row: Any, lease: Any) -> None:
        assert kind.claim(row) is None
        assert elsewhere(watchdog.end_orphaned) == 1
        assert kind.read(row).attempts == 1
        successor = claimed(kind, row)
        # Should its statement have been on its way still.
        with pytest.raises(LeaseLost), transaction.atomic():
            leases.fence(lease)
        assert elsewhere(watchdog.end_orphaned) == 0
        assert kind.read(row).lease_token == successor.token

    def test_workers_are_sent_to_it(self, kind: Kind, row: Any, lease: Any) -> None:
        OrmQ.objects.all().delete()
        watchdog.end_orphaned()
        sent = [waiting.task["func"] for waiting in OrmQ.objects.all()]
        assert kind.looked_for_by in (sent or [""])
        watchdog.end_orphaned()
        assert OrmQ.objects.count() == len(sent)

    @pytest.mark.parametrize("kind", [Decays, Cases], indirect=True, ids=["decays", "cases"])
    def test_if_nobody_can_be_sent_the_lease_stays(
        self, kind: Kind, row: Any, lease: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object, **__: object) -> None:
            raise OperationalError

        with monkeypatch.context() as patched:
            patched.setattr(watchdog, "async_task", fail)
            patched.setattr(case_leases, "async_task", fail)
            with pytest.raises(OperationalError):
                watchdog.end_orphaned()
        assert kind.read(row).lease_token == lease.token
        assert watchdog.end_orphaned() == 1

    @OF_TWO_KINDS
    def test_of_the_living_and_of_other_machines_none_ends(self, kind: Kind, row: Any, lease: Any) -> None:
        # The same process on another machine, and in another container of this one.
        other = uuid.UUID(int=lease.token.int ^ 1 << 127)
        for token in (leases.new_token(), other, uuid.uuid4(), None):
            kind.write(row, lease_token=token)
            assert watchdog.end_orphaned() == 0
            assert kind.claim(row) is None
        kind.write(row, lease_token=lease.token)
        assert watchdog.end_orphaned() == 1

    @OF_TWO_KINDS
    def test_a_process_that_is_slow_keeps_its_lease_until_it_dies(self, kind: Kind, row: Any) -> None:
        claimed(kind, row)
        with living() as token:
            kind.write(row, lease_token=token)
            assert watchdog.end_orphaned() == 0
            assert kind.read(row).lease_token == token
        assert watchdog.end_orphaned() == 1

    @OF_TWO_KINDS
    def test_a_number_that_another_process_has_now_tells_nothing(self, kind: Kind, row: Any, lease: Any) -> None:
        process_bits = ((1 << leases.PROCESS_BITS) - 1) << leases.RANDOM_BITS
        with living() as successor:
            recycled = uuid.UUID(int=lease.token.int & ~process_bits | successor.int & process_bits)
            kind.write(row, lease_token=recycled)
            assert watchdog.end_orphaned() == 0
            # It waits until the lease has run out, as on another machine.
            assert kind.claim(row) is None
            kind.let_pass(row)
            assert kind.claim(row)

    @OF_TWO_KINDS
    def test_what_lost_a_worker_before_waits(self, kind: Kind, row: Any, lease: Any) -> None:
        kind.write(row, attempts=2)
        assert watchdog.end_orphaned() == 0
        kind.write(row, attempts=1)
        assert watchdog.end_orphaned() == 1

    @OF_TWO_KINDS
    def test_what_somebody_claimed_meanwhile_is_theirs(self, kind: Kind, row: Any, lease: Any) -> None:
        seen = leases.orphaned()
        assert seen == [lease.token]
        kind.let_pass(row)
        successor = elsewhere(lambda: claimed(kind, row))
        kind.write(row, attempts=1)
        assert leases.end_orphaned(seen, wake=lambda _model: None) == 0
        assert kind.read(row).lease_token == successor.token

    @OF_TWO_KINDS
    def test_a_row_that_is_locked_is_passed_over(self, kind: Kind, row: Any, lease: Any) -> None:
        with held(lambda: kind.model._default_manager.select_for_update().get(pk=row.pk)):
            assert watchdog.end_orphaned() == 0
        assert watchdog.end_orphaned() == 1

    @OF_TWO_KINDS
    def test_of_two_watchdogs_one_ends_it(self, kind: Kind, row: Any, lease: Any) -> None:
        OrmQ.objects.all().delete()
        assert set(at_once(2, lambda _: watchdog.end_orphaned())) == {0, 1}
        sent = [waiting.task["func"] for waiting in OrmQ.objects.all()]
        assert len(sent) == len(set(sent))


def test_all_kinds_of_leases_are_tried() -> None:
    assert {kind.model for kind in (*KINDS, *OTHER_KINDS)} == set(leases._leased_models())


@pytest.mark.django_db
def test_the_look_for_them_is_one_statement(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(1):
        assert watchdog.end_orphaned() == 0


class TestKeepAlive:
    """Beside a long step a thread renews the lease."""

    @pytest.fixture(autouse=True)
    def _often(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(leases, "RENEWALS", 30_000)

    @OF_TWO_KINDS
    def test_it_is_renewed_on_another_connection(self, row: Any, kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
        lease = claimed(kind, row)
        kind.let_pass(row)
        renewed, update = threading.Event(), QuerySet.update

        def seen(rows: Any, **changes: Any) -> int:
            done = update(rows, **changes)
            renewed.set()
            return done

        with monkeypatch.context() as patch, leases.keep_alive(lease):
            patch.setattr(QuerySet, "update", seen)
            assert renewed.wait(30)
        assert kind.claim(row) is None
        lease.check()

    @OF_TWO_KINDS
    def test_who_lost_it_is_told(self, row: Any, kind: Kind) -> None:
        lease = claimed(kind, row)
        leases.revoke(kind.model._default_manager.filter(pk=row.pk))
        with leases.keep_alive(lease):
            assert lease.is_lost.wait(30)
            with pytest.raises(LeaseLost):
                lease.check()
