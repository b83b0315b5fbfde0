"""The store: whose items are, who may touch them, what limits them, and what happens to them with their person."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memories import invariants
from memories.curation.people.external_ids import change_external_id
from memories.curation.people.merging.merge import merge_people
from memories.curation.reverting import revert
from memories.curation.tenants.settings import save_tenant
from memories.embedding import vectors
from memories.exceptions import CapacityReached, InvalidInput, KeyBound, PersonRestricted
from memories.models import EndUser, StoreItem, StoreItemVector, Tenant
from memories.privacy import retention
from memories.privacy.expiry import store_items
from memories.store import reading, writing
from memories.store.reading import Lookup, NamespaceQuery, Search
from memories.store.viewers import StoreViewer
from memories.store.writing import Write
from tests import factories
from tests.database import statements

pytestmark = pytest.mark.django_db
ALICE = ("memories", "alice")


@pytest.fixture(autouse=True)
def ended_sound(db: None) -> Any:
    yield
    assert [one for one in invariants.check() if one.name.startswith("store")] == []


def put(tenant: Tenant, namespace: tuple[str, ...], key: str = "k", user_id: str = "", **more: Any) -> None:
    value = more.pop("value", {"text": "Drinks green tea."})
    one = Write(namespace, key, value=value, **more)
    writing.write([one], tenant=tenant, viewer=StoreViewer(tenant, user_id), now=timezone.now())


def get(tenant: Tenant, namespace: tuple[str, ...], key: str = "k", user_id: str = "") -> Any:
    [found] = reading.look_up([Lookup(namespace, key)], StoreViewer(tenant, user_id))
    return found and found.value


def found(tenant: Tenant, prefix: tuple[str, ...] = (), user_id: str = "", **more: Any) -> list[tuple[str, str]]:
    rows = reading.search(Search(prefix, **more), StoreViewer(tenant, user_id))
    return [(".".join(one.namespace), one.key) for one in rows]


class TestBoundKeys:
    def test_touch_the_namespaces_of_their_person_alone(self, tenant: Tenant) -> None:
        for namespace in (ALICE, ("memories", "bob"), ("docs",), ("alice", "filesystem")):
            put(tenant, namespace)
        assert get(tenant, ALICE, user_id="alice")
        put(tenant, ALICE, "more", user_id="alice")
        own = [("memories.alice", "more"), ("alice.filesystem", "k"), ("memories.alice", "k")]
        assert found(tenant, user_id="alice") == own
        assert found(tenant, ("memories",), user_id="alice") == [own[0], own[2]]
        listed = reading.list_namespaces(NamespaceQuery(), StoreViewer(tenant, "alice"))
        assert listed == [["alice", "filesystem"], ["memories", "alice"]]

    @pytest.mark.parametrize("namespace", [("memories", "bob"), ("docs",), ("bob", "filesystem"), ("memories",)])
    def test_are_refused_elsewhere(self, tenant: Tenant, namespace: tuple[str, ...]) -> None:
        put(tenant, namespace)
        for act in (
            lambda: get(tenant, namespace, user_id="alice"),
            lambda: put(tenant, namespace, user_id="alice"),
            lambda: put(tenant, namespace, user_id="alice", value=None),
        ):
            with pytest.raises(KeyBound):
                act()
        assert get(tenant, namespace)

    def test_a_prefix_of_somebody_else_is_refused(self, tenant: Tenant) -> None:
        with pytest.raises(KeyBound):
            found(tenant, ("memories", "bob"), user_id="alice")


class TestTimesToLive:
    def expire(self, **over: Any) -> None:
        StoreItem.objects.filter(**over).update(expires_at=timezone.now() - timedelta(minutes=1))

    def test_expired_items_are_not_there(self, tenant: Tenant) -> None:
        put(tenant, ALICE, "old", ttl=5)
        put(tenant, ALICE, "kept")
        self.expire(key="old")
        assert get(tenant, ALICE, "old") is None
        assert found(tenant) == [("memories.alice", "kept")]
        put(tenant, ("only", "old"), ttl=5)
        self.expire(namespace="only.old")
        assert reading.list_namespaces(NamespaceQuery(), StoreViewer(tenant)) == [["memories", "alice"]]

    def test_a_read_lets_them_begin_anew_unless_it_says_otherwise(self, tenant: Tenant) -> None:
        put(tenant, ALICE, ttl=10)
        soon = timezone.now() + timedelta(minutes=1)
        for refresh, later in ((False, False), (True, True)):
            for act in (
                lambda refresh=refresh: reading.look_up([Lookup(ALICE, "k", refresh=refresh)], StoreViewer(tenant)),
                lambda refresh=refresh: reading.search(Search(ALICE, refresh=refresh), StoreViewer(tenant)),
            ):
                StoreItem.objects.update(expires_at=soon)
                act()
                assert StoreItem.objects.filter(expires_at__gt=soon).exists() is later

    def test_a_put_without_one_keeps_the_item(self, tenant: Tenant) -> None:
        put(tenant, ALICE, ttl=10)
        put(tenant, ALICE)
        assert StoreItem.objects.get().expires_at is None

    def test_what_expired_begins_anew_when_it_is_put(self, tenant: Tenant) -> None:
        put(tenant, ALICE, ttl=5)
        StoreItem.objects.update(created_at=factories.NOW)
        put(tenant, ALICE, ttl=5)
        assert StoreItem.objects.get().created_at == factories.NOW
        self.expire()
        put(tenant, ALICE)
        assert StoreItem.objects.get().created_at > factories.NOW

    def test_the_sweep_deletes_them_with_their_vectors(self, tenant: Tenant) -> None:
        for key in ("old", "kept"):
            put(tenant, ALICE, key, ttl=5)
        put(tenant, ("memories", "held"), ttl=5)
        while vectors.embed_some().moved:
            """Until every text has its vector."""
        assert StoreItemVector.objects.count() == 3
        self.expire(key="old")
        self.expire(namespace="memories.held")
        EndUser.objects.filter(external_id="held").update(restricted_at=timezone.now())
        assert store_items.sweep_expired(now=timezone.now()) == 1
        assert StoreItemVector.objects.count() == 2
        assert found(tenant) == [("memories.alice", "kept")]
        EndUser.objects.update(restricted_at=None)
        assert store_items.sweep_expired(now=timezone.now()) == 1

    def test_retention_deletes_what_was_not_written_for_so_long(self, tenant: Tenant) -> None:
        Tenant.objects.update(numbers={"keep_store_days": 30})
        tenant.refresh_from_db()
        for key in ("old", "new"):
            put(tenant, ALICE, key)
            put(tenant, ("docs",), key)
        StoreItem.objects.filter(key="old").update(updated_at=timezone.now() - timedelta(days=31))
        assert retention.preview(tenant, timezone.now())["store"] == 2
        done = retention.retain(tenant=tenant, now=timezone.now())
        assert done.counts["store"] == 2
        assert sorted(found(tenant)) == [("docs", "new"), ("memories.alice", "new")]


class TestLimits:
    def test_a_value_that_is_too_large_is_refused(self, tenant: Tenant) -> None:
        tenant.numbers = {"store_value_kilobytes": 1}
        put(tenant, ALICE, value={"text": "x" * 900})
        with pytest.raises(InvalidInput) as refused:
            put(tenant, ALICE, value={"text": "x" * 1_100})
        assert refused.value.faults[0].code == "max_size"
        assert len(get(tenant, ALICE)["text"]) == 900

    def test_more_items_than_one_may_have_are_refused(self, tenant: Tenant) -> None:
        tenant.numbers = {"store_items": 100}
        writes = [Write(ALICE, str(number), value={}) for number in range(100)]
        writing.write(writes, tenant=tenant, viewer=StoreViewer(tenant), now=timezone.now())
        with pytest.raises(CapacityReached):
            put(tenant, ALICE, "another")
        # What is there can be written, and others have room of their own.
        put(tenant, ALICE, "5", value={"a": 1})
        put(tenant, ("memories", "bob"))
        put(tenant, ("docs",))
        assert StoreItem.objects.count() == 102

    def test_a_label_that_can_be_no_id_is_refused(self, tenant: Tenant) -> None:
        with pytest.raises(InvalidInput):
            put(tenant, ("memories", "a\nb"))
        put(tenant, ("docs", "a\nb"))
        assert get(tenant, ("docs", "a\nb"))

    def test_a_put_takes_few_statements(self, tenant: Tenant) -> None:
        put(tenant, ALICE)
        # The patterns, the person, the item.
        assert len(statements(lambda: put(tenant, ALICE))) == 3
        assert len(statements(lambda: get(tenant, ALICE))) == 1


class TestPeople:
    def test_nothing_of_a_restricted_person_is_shown_or_written(self, tenant: Tenant) -> None:
        put(tenant, ALICE)
        put(tenant, ("memories", "bob"))
        EndUser.objects.filter(external_id="alice").update(restricted_at=timezone.now())
        assert get(tenant, ALICE) is None
        assert found(tenant, query="tea") == [("memories.bob", "k")]
        assert reading.list_namespaces(NamespaceQuery(), StoreViewer(tenant)) == [["memories", "bob"]]
        for value in ({"a": 1}, None):
            with pytest.raises(PersonRestricted):
                put(tenant, ALICE, value=value)
        EndUser.objects.update(restricted_at=None)
        assert get(tenant, ALICE)

    def test_a_merge_leaves_namespaces_and_gives_the_survivor_their_items(self, tenant: Tenant) -> None:
        put(tenant, ALICE, "hers")
        put(tenant, ("memories", "alicia"), "hers too")
        one, two = (EndUser.objects.get(external_id=name) for name in ("alice", "alicia"))
        done = merge_people(survivor=one.pk, merged=two.pk, actor=factories.COMMAND, now=timezone.now())
        put(tenant, ("memories", "alicia"), "later")
        assert get(tenant, ("memories", "alicia"), "hers too", user_id="alice")
        assert {key for _, key in found(tenant, user_id="alice")} == {"hers", "hers too", "later"}
        EndUser.objects.filter(pk=one.pk).update(restricted_at=timezone.now())
        assert found(tenant) == []
        with pytest.raises(PersonRestricted):
            put(tenant, ("memories", "alicia"))
        EndUser.objects.filter(pk=one.pk).update(restricted_at=None)
        revert(change_set=done.id, actor=factories.COMMAND, now=timezone.now())
        assert {key for _, key in found(tenant, user_id="alicia")} == {"hers too", "later"}

    def test_with_a_new_id_the_old_one_reads_nothing_of_theirs(self, tenant: Tenant) -> None:
        put(tenant, ALICE)
        person = EndUser.objects.get(external_id="alice")
        change_external_id(
            end_user=person, external_id="anna", keeps_old=False, actor=factories.COMMAND, now=timezone.now()
        )
        assert get(tenant, ALICE) is None
        assert get(tenant, ("memories", "anna"))
        put(tenant, ALICE, value={"text": "somebody else"})
        assert found(tenant, user_id="anna") == [("memories.anna", "k")]

    def test_an_old_id_that_is_kept_leads_to_its_items(self, tenant: Tenant) -> None:
        put(tenant, ALICE)
        person = EndUser.objects.get(external_id="alice")
        given: dict[str, Any] = {"actor": factories.COMMAND, "now": timezone.now()}
        change_external_id(end_user=person, external_id="anna", keeps_old=True, **given)
        put(tenant, ALICE, "later")
        put(tenant, ("memories", "anna"), "as anna")
        assert len(found(tenant, user_id="anna")) == 3
        person.refresh_from_db()
        # The alias goes, and its items stay.
        change_external_id(end_user=person, external_id="alice", keeps_old=True, **given)
        assert len(found(tenant, user_id="alice")) == 3


class TestPatterns:
    def change(self, tenant: Tenant, *patterns: str) -> Tenant:
        changed = Tenant.objects.get(pk=tenant.pk)
        changed.person_namespaces = list(patterns)
        return save_tenant(tenant=changed, actor=factories.COMMAND, now=timezone.now())

    def test_new_ones_give_items_to_whom_they_name(self, tenant: Tenant) -> None:
        put(tenant, ("users", "zoe", "notes"))
        put(tenant, ALICE)
        owners = StoreItem.objects.order_by("namespace").values_list("end_user__external_id", flat=True)
        assert list(owners) == ["alice", None]
        self.change(tenant, "users.{user_id}")
        assert list(owners.all()) == [None, "zoe"]

    def test_a_write_under_older_ones_follows_the_new_ones(self, tenant: Tenant) -> None:
        self.change(tenant, "users.{user_id}")
        # As it was read with the key, before the change.
        assert tenant.person_namespaces != ["users.{user_id}"]
        put(tenant, ("users", "zoe"))
        assert StoreItem.objects.get().end_user == EndUser.objects.get(external_id="zoe")

    @pytest.mark.parametrize(
        ("namespace", "named"),
        [
            (("memories", "zoe"), "zoe"),
            (("memories", "zoe", "deep"), "zoe"),
            (("zoe", "filesystem"), "zoe"),
            (("memories",), None),
            (("a", "b"), None),
            (("org", "acme", "zoe"), "zoe"),
        ],
    )
    def test_the_first_that_fits_decides(self, tenant: Tenant, namespace: tuple[str, ...], named: str | None) -> None:
        self.change(tenant, "memories.{user_id}", "{user_id}.filesystem", "org.*.{user_id}")
        tenant.refresh_from_db()
        put(tenant, namespace)
        owner = StoreItem.objects.get().end_user
        assert (owner and owner.external_id) == named


def test_an_item_is_embedded_anew_when_it_is_written(tenant: Tenant) -> None:
    put(tenant, ALICE, value={"text": "green tea"})
    vectors.embed_some()
    while vectors.embed_some().moved:
        """Until every text has its vector."""
    [before] = StoreItemVector.objects.all()
    put(tenant, ALICE, value={"a": "bicycle", "b": "tea"}, index=("a", "b"))
    # The vector of the earlier text does not count.
    [best] = reading.search(Search(ALICE, query="bicycle"), StoreViewer(tenant))
    assert best.score == pytest.approx(1.0, abs=1e-3)
    assert vectors.embed_some().moved
    assert StoreItemVector.objects.count() == 2
    assert not StoreItemVector.objects.filter(pk=before.pk).exists()
    [best] = reading.search(Search(ALICE, query="bicycle"), StoreViewer(tenant))
    assert best.score == pytest.approx(1.0, abs=1e-2)
