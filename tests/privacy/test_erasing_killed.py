"""An erasure that is killed between any two statements goes on where it was, and ends the same."""

import os
import random
import signal
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from django.db import connection, connections

from memories import conf
from memories.models import AuditEvent, CaseState, EndUser, PrivacyCase, Tenant, Tombstone
from memories.privacy import registry, running
from tests import factories
from tests.factories import LATER
from tests.privacy.erased_world import erasure, known, rows_beside, somebody, stand_in

pytestmark = pytest.mark.django_db(transaction=True)
# So many erasures are killed so often, each time at another point.
SEEDS, POINTS = 3, 4
# Statements of the erasure of somebody(), about; beyond them nothing is killed any more.
STATEMENTS = 1_150


class Killed(BaseException):
    """The process is gone: nothing may catch it."""


@pytest.fixture
def owner(db: None) -> Tenant:
    return factories.tenant()


@pytest.fixture
def case(owner: Tenant, monkeypatch: pytest.MonkeyPatch) -> PrivacyCase:
    stand_in(monkeypatch)
    somebody(owner, "witness")
    person = somebody(owner, "anneke-7")
    known(factories.end_user(owner), "Told to two", allowed_users=["anneke-7", "else"])
    return erasure(person)


def carry_out(case: PrivacyCase) -> PrivacyCase:
    return running.carry_out(case_id=case.pk, now=LATER, wait_seconds=30)


def at_statement(number: int, act: Callable[[], None]) -> Callable[..., Any]:
    """A wrapper that acts instead of sending this statement."""
    sent = 0

    def wrapper(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal sent
        sent += 1
        if sent == number:
            act()
        return execute(sql, params, many, context)

    return wrapper


def die() -> None:
    raise Killed


def ended_well(case: PrivacyCase, before: dict[str, int]) -> bool:
    """As an erasure that nobody disturbed."""
    case.refresh_from_db()
    assert (case.state, case.failure, case.end_user_id) == (CaseState.COMPLETED, "", None)
    # The case itself stays as it is until its receipt is written.
    before["memories.PrivacyCase"] -= 1
    assert case.counts == {label: rows for label, rows in before.items() if rows}
    assert list(EndUser.objects.filter(external_id__contains="anneke")) == []
    digests = {conf.digest_of_person(case.tenant_id, name) for name in ("anneke-7", "anneke-7-old")}
    assert {bytes(stone.digest) for stone in Tombstone.objects.all()} == digests
    trail = AuditEvent.objects.filter(case_uuid=case.pk).order_by("pk").values_list("verb", flat=True)
    assert list(trail) == ["erase", "complete"]
    witness = EndUser.objects.get(external_id="witness")
    left = registry.counts(witness)
    assert (left["memories.Turn"], left["memories.Fact"], left["memories.FactVector"]) == (2, 2, 1)
    return True


def free_the_lease() -> None:
    PrivacyCase.objects.update(lease_until=None)


def test_how_many_statements_there_are(case: PrivacyCase) -> None:
    """Else the points below would be all at its beginning, or beyond its end."""
    sent: list[str] = []

    def wrapper(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        sent.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(wrapper):
        carry_out(case)
    assert STATEMENTS * 0.7 < len(sent) < STATEMENTS * 1.3


@pytest.mark.parametrize("seed", range(SEEDS))
def test_killed_at_random_points_it_ends_the_same(case: PrivacyCase, seed: int) -> None:
    assert case.end_user
    before = registry.counts(case.end_user)
    # Whoever goes on is killed, too, though less often than ends the case.
    for number in random.Random(seed).choices(range(1, STATEMENTS), k=POINTS):
        with ExitStack() as frame:
            frame.enter_context(connection.execute_wrapper(at_statement(number, die)))
            try:
                carry_out(case)
            except Killed:
                connection.close()
        free_the_lease()
    carry_out(case)
    assert ended_well(case, before)


def test_processes_killed_with_signal_9_leave_nothing_half_done(case: PrivacyCase) -> None:
    assert case.end_user
    before = registry.counts(case.end_user)
    # Statements of the one process, of the next, which goes on, and of the third.
    for number in (25, 180, 280):
        connections.close_all()
        child = os.fork()
        if not child:
            with connection.execute_wrapper(at_statement(number, lambda: os.kill(os.getpid(), signal.SIGKILL))):
                carry_out(case)
            os._exit(1)
        _, status = os.waitpid(child, 0)
        assert os.WTERMSIG(status) == signal.SIGKILL
        case.refresh_from_db()
        assert case.state in (CaseState.RUNNING, CaseState.VERIFYING)
        free_the_lease()
    carry_out(case)
    assert ended_well(case, before)


def test_nothing_of_the_witness_changes_by_a_killed_run(owner: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch)
    somebody(owner, "witness")
    person = factories.end_user(owner, external_id="anneke-7")
    before = rows_beside()
    factories.session(person)
    case = erasure(person)
    with connection.execute_wrapper(at_statement(60, die)), pytest.raises(Killed):
        carry_out(case)
    connection.close()
    free_the_lease()
    carry_out(case)
    after = rows_beside()
    before["memories_enduser"] = [row for row in before["memories_enduser"] if "anneke-7" not in row]
    # A file that waits to be imported can be of anybody (tests/imports/test_uploaded.py).
    for table in ("memories_import", "memories_importpiece"):
        assert before.pop(table) != after.pop(table)
    assert after == before
