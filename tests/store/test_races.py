"""The store on two connections at once: puts of one key, a put against an erasure, and against a sweep."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memories import invariants
from memories.exceptions import Erased, PersonRestricted
from memories.models import CaseState, EndUser, StoreItem, Tenant
from memories.privacy import running
from memories.store import reading, writing
from memories.store.reading import Lookup
from memories.store.viewers import StoreViewer
from memories.store.writing import Write
from tests.database import PATIENCE, at_once, blocked, elsewhere, held
from tests.privacy.erased_world import erasure, stand_in

pytestmark = pytest.mark.django_db(transaction=True)
ALICE = ("memories", "alice")


@pytest.fixture(autouse=True)
def ended_sound(db: None) -> Any:
    yield
    assert invariants.check() == []


def put(tenant: Tenant, *keys: str, value: Any = None, namespace: tuple[str, ...] = ALICE) -> None:
    own = Tenant.objects.get(pk=tenant.pk)
    writes = [Write(namespace, key, value={"text": "tea"} if value is None else value) for key in keys]
    writing.write(writes, tenant=own, viewer=StoreViewer(own), now=timezone.now())


def test_two_first_puts_of_one_key_leave_one_item(tenant: Tenant) -> None:
    outcomes = at_once(4, lambda number: put(tenant, "k", value={"number": number}))
    assert outcomes == [None] * 4
    item = StoreItem.objects.get()
    assert item.value["number"] in range(4)
    assert EndUser.objects.count() == 1


def test_batches_with_the_same_keys_do_not_deadlock(tenant: Tenant) -> None:
    keys = [str(number) for number in range(30)]
    outcomes = at_once(4, lambda number: put(tenant, *(keys if number % 2 else reversed(keys)), value={"n": number}))
    assert outcomes == [None] * 4
    # All of one batch, or all of another: they followed each other.
    assert len(set(StoreItem.objects.values_list("value__n", flat=True))) == 1
    assert StoreItem.objects.count() == 30


def test_the_later_of_two_puts_stays(tenant: Tenant) -> None:
    put(tenant, "k")
    with held(lambda: put(tenant, "k", value={"text": "first"})):
        later = blocked(lambda: put(tenant, "k", value={"text": "second"}))
    later.result(PATIENCE)
    assert StoreItem.objects.get().value == {"text": "second"}


class TestErasure:
    @pytest.fixture(autouse=True)
    def alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        stand_in(monkeypatch)

    def erase(self, person: EndUser, **over: Any) -> None:
        case = running.carry_out(case_id=erasure(person, **over).pk, now=timezone.now(), wait_seconds=PATIENCE)
        assert case.state == CaseState.COMPLETED, (case.failure, case.findings)

    def test_takes_the_persons_items_and_no_others(self, tenant: Tenant) -> None:
        put(tenant, "k", value={"text": "Bakes rye bread on Sundays."})
        put(tenant, "k", namespace=("alice", "filesystem"))
        put(tenant, "k", namespace=("memories", "bob"))
        put(tenant, "k", namespace=("docs",))
        self.erase(EndUser.objects.get(external_id="alice"))
        assert set(StoreItem.objects.values_list("namespace", flat=True)) == {"memories.bob", "docs"}

    def test_waits_for_a_put_that_is_under_way_and_takes_it_along(self, tenant: Tenant) -> None:
        put(tenant, "k")
        person = EndUser.objects.get()
        with held(lambda: put(tenant, "later")):
            going = blocked(lambda: self.erase(person))
        going.result(PATIENCE)
        assert not StoreItem.objects.exists()

    def test_a_put_that_waited_for_it_stores_nothing(self, tenant: Tenant) -> None:
        put(tenant, "k")
        person = EndUser.objects.get()

        def restrict() -> None:
            # As the first step of an erasure does it.
            EndUser.objects.select_for_update().get(pk=person.pk)
            EndUser.objects.filter(pk=person.pk).update(restricted_at=timezone.now())

        with held(restrict):
            waiting = blocked(lambda: put(tenant, "later"))
        with pytest.raises(PersonRestricted):
            waiting.result(PATIENCE)
        assert list(StoreItem.objects.values_list("key", flat=True)) == ["k"]

    def test_afterwards_the_id_is_refused_where_the_tombstone_says_so(self, tenant: Tenant) -> None:
        put(tenant, "k")
        self.erase(EndUser.objects.get(), policy="refuse")
        with pytest.raises(Erased):
            put(tenant, "k")
        assert not StoreItem.objects.exists()
        put(tenant, "k", namespace=("memories", "bob"))


def test_a_read_does_not_wait_for_a_put(tenant: Tenant) -> None:
    put(tenant, "k")
    StoreItem.objects.update(ttl_minutes=5, expires_at=timezone.now() + timedelta(minutes=5))
    with held(lambda: put(tenant, "k", value={"text": "new"})):
        [found] = elsewhere(lambda: reading.look_up([Lookup(ALICE, "k")], StoreViewer(tenant)))
    assert found
    assert found.value == {"text": "tea"}
