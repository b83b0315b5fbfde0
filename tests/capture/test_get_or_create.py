"""Who was erased does not come back unnoticed, whichever way they come, also while the erasure commits."""

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memories import conf
from memories.audit import Actor
from memories.capture import get_or_create, ingest
from memories.capture.ingest import PostedMessage
from memories.curation.people.external_ids import change_external_id
from memories.curation.people.records import add_person
from memories.exceptions import Erased
from memories.models import ActorKind, EndUser, ReturnPolicy, Tenant, Tombstone
from memories.models.ids import new_id
from tests import factories
from tests.api.client import HubClient
from tests.database import PATIENCE, at_once, blocked, elsewhere, held, statements
from tests.factories import NOW

pytestmark = pytest.mark.django_db
STAFF = Actor(kind=ActorKind.OPERATOR, id="7")
HELLO = [{"role": "user", "content": "Hello"}]
ROOT = Path(get_or_create.__file__).parents[1]


@pytest.fixture
def client(tenant: Tenant) -> HubClient:
    return HubClient(factories.api_key(tenant)[1])


def bury(tenant: Tenant, name: str, policy: str = ReturnPolicy.FLAG) -> Tombstone:
    digest = conf.digest_of_person(tenant.pk, name)
    return Tombstone.objects.create(tenant=tenant, digest=digest, policy=policy, case_uuid=new_id(), created_at=NOW)


def post(tenant: Tenant, name: str) -> None:
    ingest.store_turns(
        tenant=tenant, user_id=name, session_id="s", agent_id="", messages=[PostedMessage(role="user", content="Hello")]
    )


def add(tenant: Tenant, name: str) -> EndUser:
    return add_person(tenant=tenant, external_id=name, actor=STAFF, now=NOW)


def change(tenant: Tenant, name: str) -> EndUser:
    person = factories.end_user(tenant)
    return change_external_id(end_user=person, external_id=name, keeps_old=False, actor=STAFF, now=NOW)


WAYS: dict[str, Callable[[Tenant, str], Any]] = {"turns": post, "add": add, "change": change}
REQUESTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "turns": ("POST", "/turns", {"session_id": "s", "messages": HELLO}),
    "fact": ("POST", "/facts", {"content": "Lives in Leiden", "category": "knowledge"}),
    "profile": ("PUT", "/profile/work_context", {"summary": "Runs a bakery."}),
    "memory": ("PUT", "/memory", {"facts": []}),
}


def call(client: HubClient, way: str, name: str) -> Any:
    method, path, body = REQUESTS[way]
    return client.call(method, path, {"user_id": name, **body})


class TestByTheAPI:
    @pytest.mark.parametrize("way", REQUESTS)
    def test_refused(self, client: HubClient, tenant: Tenant, way: str) -> None:
        bury(tenant, "anna", ReturnPolicy.REFUSE)
        answer = call(client, way, "anna")
        assert (answer.status_code, answer.json()["code"]) == (410, "erased")
        assert "anna" not in answer.content.decode()
        assert not EndUser.objects.exists()
        assert call(client, way, "ben").status_code < 300

    @pytest.mark.parametrize(
        ("way", "policy", "is_flagged"), [*((way, "flag", True) for way in REQUESTS), ("turns", "allow_new", False)]
    )
    def test_taken_as_a_new_person(
        self, client: HubClient, tenant: Tenant, way: str, policy: str, is_flagged: bool
    ) -> None:
        tombstone = bury(tenant, "anna", policy)
        assert call(client, way, "anna").status_code < 300
        # Known by now: nobody came back once more.
        call(client, way, "anna")
        assert EndUser.objects.get().erased_before is is_flagged
        tombstone.refresh_from_db()
        assert tombstone.met == int(is_flagged)
        assert (tombstone.last_met_at is not None) is is_flagged

    def test_in_bulk_all_or_none(self, client: HubClient, tenant: Tenant) -> None:
        bury(tenant, "anna", ReturnPolicy.REFUSE)
        talks = [{"user_id": name, "session_id": "s", "messages": HELLO} for name in ("ben", "anna")]
        answer = client.post("/turns/bulk", {"conversations": talks})
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (410, "/conversations/1")
        assert not EndUser.objects.exists()

    def test_reading_tells_of_nobody(self, client: HubClient, tenant: Tenant) -> None:
        bury(tenant, "anna", ReturnPolicy.REFUSE)
        assert client.post("/context", {"user_id": "anna"}).json()["memory"] == ""
        assert client.post("/search", {"user_id": "anna", "query": "Leiden"}).json()["results"] == []
        assert client.call("GET", "/profile", query={"user_id": "anna"}).status_code == 200
        assert not EndUser.objects.exists()


class TestWhoIsMeant:
    @pytest.mark.parametrize("name", ["anna", "ANNA", " anna ", "Ａｎｎａ"])
    def test_an_id_that_is_written_otherwise(self, tenant: Tenant, name: str) -> None:
        bury(tenant, "Anna", ReturnPolicy.REFUSE)
        for way in WAYS.values():
            with pytest.raises(Erased):
                way(tenant, name)
        assert not EndUser.objects.filter(external_id=name).exists()

    @pytest.mark.parametrize("way", WAYS)
    def test_another_id_and_another_tenant(self, tenant: Tenant, way: str) -> None:
        bury(tenant, "anna", ReturnPolicy.REFUSE)
        WAYS[way](tenant, "anna2")
        WAYS[way](factories.tenant(), "anna")
        assert not EndUser.objects.filter(erased_before=True).exists()

    @pytest.mark.parametrize("way", WAYS)
    def test_flagged(self, tenant: Tenant, way: str) -> None:
        bury(tenant, "anna")
        WAYS[way](tenant, "anna")
        assert EndUser.objects.get(external_id="anna").erased_before

    def test_an_id_given_up_is_no_tombstone(self, tenant: Tenant) -> None:
        person = add(tenant, "anna")
        change_external_id(end_user=person, external_id="ann", keeps_old=False, actor=STAFF, now=NOW)
        post(tenant, "anna")
        assert not EndUser.objects.get(external_id="anna").erased_before

    def test_a_refused_change_leaves_the_id(self, tenant: Tenant) -> None:
        bury(tenant, "anna", ReturnPolicy.REFUSE)
        person = add(tenant, "ben")
        with pytest.raises(Erased):
            change_external_id(end_user=person, external_id="anna", keeps_old=True, actor=STAFF, now=NOW)
        assert list(EndUser.objects.values_list("external_id", flat=True)) == ["ben"]


def test_who_is_known_costs_nothing(tenant: Tenant) -> None:
    assert sum("memories_tombstone" in one for one in statements(lambda: post(tenant, "anna"))) == 1
    again = statements(lambda: post(tenant, "anna"))
    assert not any("memories_tombstone" in one or 'INSERT INTO "memories_enduser' in one for one in again)
    found = statements(lambda: get_or_create.end_user(tenant=tenant, user_id="anna", now=NOW))
    assert len(found) == 1


@pytest.mark.django_db(transaction=True)
class TestWhileTheErasureCommits:
    """As the last transaction of an erasure: the person goes and the tombstone comes, seen by others all at once."""

    @pytest.fixture
    def person(self, tenant: Tenant) -> EndUser:
        return factories.end_user(tenant, external_id="anna")

    def erase(self, person: EndUser) -> None:
        EndUser.objects.filter(pk=person.pk).delete()
        bury(person.tenant, "anna")

    # Whoever changes an id to this one looks at its holder first, and is told that the id is taken.
    @pytest.mark.parametrize("way", ["turns", "add"])
    def test_who_waited_for_it_is_flagged(self, person: EndUser, way: str) -> None:
        with held(lambda: self.erase(person)):
            waiting = blocked(lambda: WAYS[way](person.tenant, "anna"))
        waiting.result(PATIENCE)
        back = EndUser.objects.get(external_id="anna")
        assert back.pk != person.pk
        assert back.erased_before

    def test_a_look_before_the_insert_would_miss_it(self, person: EndUser) -> None:
        def look_first(tenant: Tenant, name: str) -> EndUser:
            asked = EndUser(tenant=tenant, external_id=name, created_at=NOW, last_seen_at=NOW)
            get_or_create.apply_return_policy(asked, now=NOW)
            asked.save(force_insert=True)
            return asked

        with held(lambda: self.erase(person)):
            waiting = blocked(lambda: look_first(person.tenant, "anna"))
        assert not waiting.result(PATIENCE).erased_before

    def test_between_the_look_for_the_person_and_the_insert(
        self, person: EndUser, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = EndUser.objects.create

        def create(**named: Any) -> EndUser:
            # What others commit at the last moment.
            elsewhere(lambda: bury(person.tenant, "ben"))
            return real(**named)

        monkeypatch.setattr(EndUser.objects, "create", create)
        made, is_new = get_or_create.end_user(tenant=person.tenant, user_id="ben", now=NOW)
        assert is_new
        assert made.erased_before

    def test_two_at_once_make_one(self, tenant: Tenant) -> None:
        bury(tenant, "ben")
        made = at_once(4, lambda _: get_or_create.end_user(tenant=tenant, user_id="ben", now=NOW))
        assert sorted(one[1] for one in made if isinstance(one, tuple)) == [False, False, False, True]
        assert Tombstone.objects.get().met == 1


# The verbs look themselves; the others make people of a demonstration up.
MAKERS = {
    "capture/get_or_create.py",
    "curation/people/external_ids.py",
    "curation/people/records.py",
    "management/demo.py",
    "management/seeding.py",
}


def makes_people(source: str) -> bool:
    """Whether it could write a new end user."""
    if "EndUser" not in source:
        return False
    calls = [ast.unparse(node.func) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    verbs = ("create", "get_or_create", "update_or_create", "bulk_create")
    return any(call == "EndUser" or call in [f"EndUser.objects.{verb}" for verb in verbs] for call in calls)


def test_nobody_else_makes_people() -> None:
    sources = [path for path in ROOT.rglob("*.py") if "migrations" not in path.parts]
    found = {path.relative_to(ROOT).as_posix() for path in sources if makes_people(path.read_text(encoding="utf-8"))}
    assert found == MAKERS


@pytest.mark.parametrize("call", ["EndUser()", "EndUser.objects.get_or_create(tenant=t)"])
def test_the_guard_sees_who_does(call: str) -> None:
    assert makes_people(f"def f():\n    return {call}\n")
    assert not makes_people("EndUser.objects.filter(pk=1)")
