"""Another tenant's ids in path, query and body answer exactly as ids that never existed, and change nothing."""

import json
import re
import uuid
from contextlib import nullcontext
from functools import cache
from typing import Any

import pytest
from django.apps import apps
from django.db import connection

from memories.curation.facts.publishing import publish_fact
from memories.management import policies
from memories.models import APIKey, DiaryEntry, Episode, Import, MemoryGroup, Session, Status, StoreItem
from tests import factories
from tests.api.calls import CALLS, SECRET, Ids, populated, send
from tests.api.client import operations
from tests.api.conftest import Hub
from tests.database import forgetting_tenants, runtime_role, undone, walled

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
# What the owner's item says afterwards.
WRITTEN: dict[str, list[Any]] = {"putStoreItem": [{"a": "b"}], "deleteStoreItem": []}
TIME = r"\d{4}-\d\d-\d\dT[\d:.]+Z"


@pytest.mark.usefixtures("with_model")
def test_foreign_ids_never_existed(hub: Hub, other: Hub) -> None:
    theirs, nobody = populated(other.tenant), Ids()
    before = everything_of(other)
    for operation in CALLS:
        # Each as if it were the first: some can be done once only.
        with undone():
            unknown = said(send(hub.client, operation, nobody), nobody)
        with undone():
            foreign = send(hub.client, operation, theirs)
            assert said(foreign, theirs) == unknown, operation
            # An address that names an object leads nowhere.
            assert "_id}" not in operations()[operation][1] or foreign.status_code == 404, operation
            assert everything_of(other) == before, operation
            # What the caller sent itself may come back.
            may_come_back = operation in ("postTurns", "postTurnsBulk", "postTrajectory", "addFact", "addTriple")
            assert may_come_back or SECRET not in foreign.getvalue().decode(), operation


@pytest.mark.usefixtures("with_model")
def test_ones_own_ids_do(hub: Hub, other: Hub) -> None:
    """The positive control: the very same call tells the owner something else."""
    theirs = populated(other.tenant)
    for operation in CALLS:
        with undone():
            told = [said(send(one.client, operation, theirs), theirs) for one in (other, hub)]
            if operation == "clearMemory":
                # Its answer is the empty document in any case.
                assert not Episode.objects.filter(tenant=other.tenant, status=Status.ACTIVE).exists()
            elif operation in ("putStoreItem", "deleteStoreItem"):
                # Both are 204 in any case.
                assert [one.value for one in StoreItem.objects.filter(tenant=other.tenant)] == WRITTEN[operation]
            elif operation == "writeDiaryEntry":
                # 201 in any case.
                assert DiaryEntry.objects.filter(tenant=other.tenant).count() == 2
            elif operation == "createImport":
                # 202 in any case.
                assert Import.objects.filter(tenant=other.tenant).count() == 2
            elif operation == "listContentPolicyTopics":
                # The hub's own, the same for everybody.
                assert told[0] == told[1]
            elif operation == "addGroup":
                assert MemoryGroup.objects.filter(tenant=other.tenant).count() == 2
            else:
                assert told[0] != told[1], operation


@pytest.mark.usefixtures("with_model")
@pytest.mark.parametrize("wall", [True, False])
def test_behind_the_wall_no_statement_has_to_name_its_tenant(hub: Hub, other: Hub, wall: bool) -> None:
    """As if each condition for the tenant were forgotten, in every statement of every operation."""
    theirs, nobody = populated(other.tenant), Ids()
    before = everything_of(other)
    # Without it, what makes rows would look for ever for the one that stands in its way.
    asked = [one for one in CALLS if wall or operations()[one][0] == "GET"]
    forgetful, leaks = set(), set()
    if wall:
        # No check of what was made may wait for the end when a table changes.
        connection.check_constraints()
        policies.give(runtime_role()[0], enforced=True)
    with walled() if wall else nullcontext():
        for operation in asked:
            with undone():
                with forgetting_tenants():
                    unknown = said(send(hub.client, operation, nobody), nobody)
                changed = everything_of(other) != before
            with undone():
                with forgetting_tenants() as statements:
                    foreign = said(send(hub.client, operation, theirs), theirs)
                forgetful |= {operation} if statements else set()
                if foreign != unknown or changed or everything_of(other) != before:
                    leaks.add(operation)
    assert len(forgetful) > len(asked) * 0.9, set(asked) - forgetful
    assert leaks == set() if wall else len(leaks) > len(asked) / 2


def said(answer: Any, ids: Ids) -> tuple[int, Any]:
    """Status and body, with everything that differs between any two calls made the same."""
    text = answer.getvalue().decode()
    for value in (ids.user_id, SECRET, json.dumps(SECRET)[1:-1]):
        text = text.replace(value, "~")
    text = re.sub(r'"(request_id|revision)": ?"\w+"', "", text)
    return answer.status_code, re.sub(f"{UUID}|{TIME}", "~", text)


def everything_of(hub: Hub) -> dict[str, str]:
    """A digest of each table's rows that belong to the tenant, but for the key that signs in."""
    with connection.cursor() as cursor:
        cursor.execute(_digests(), {"tenant": hub.tenant.pk})
        return dict(cursor.fetchall())


@cache
def _digests() -> str:
    """One statement for all tables, whose parameter is the tenant."""
    paths = ("tenant", "session__tenant", "fact__tenant", "end_user__tenant", "tenant_uuid")
    parts = {}
    for model in apps.get_app_config("memories").get_models():
        names = {field.name for field in model._meta.get_fields()}
        path = next((path for path in paths if path.split("__")[0] in names), None)
        if path and model is not APIKey:
            rows, _ = model._default_manager.filter(**{path: uuid.uuid4()}).order_by().query.sql_with_params()
            digest = "md5(string_agg(t::text, '' ORDER BY t::text))"
            of_tenant = rows.replace("%s", "%(tenant)s")
            parts[model.__name__] = f"SELECT '{model.__name__}', coalesce({digest}, '') FROM ({of_tenant}) AS t"
    assert {"Turn", "Fact", "FactRevision", "Episode", "SessionQueue", "EndUser", "AuditEvent"} <= parts.keys()
    return " UNION ALL ".join(parts.values())


def test_a_row_that_changes_is_seen(hub: Hub, other: Hub) -> None:
    """The positive control of the comparisons."""
    populated(other.tenant)
    before = everything_of(other)
    Episode.objects.update(importance=0.1)
    assert {name for name, rows in everything_of(other).items() if rows != before[name]} == {"Episode"}
    assert before["Turn"] != everything_of(hub)["Turn"]


def test_what_an_operator_made_public_is_told_within_the_tenant_alone(hub: Hub, other: Hub) -> None:
    """And no answer to another person's agent tells whose it is."""
    owner = factories.end_user(hub.tenant, external_id="fact-owner")
    fact = factories.fact(owner, "The canteen serves lunch at noon")
    reader = factories.end_user(hub.tenant)
    factories.end_user(other.tenant, external_id=reader.external_id)

    def told(to: Hub) -> list[str]:
        named = {"user_id": reader.external_id}
        asked = {**named, "query": "When is lunch?"}
        # Without a question the facts are read by another way than with one.
        answers = [to.client.post(*call) for call in (("/context", named), ("/context", asked), ("/search", asked))]
        assert [answer.status_code for answer in answers] == [200] * 3
        return [answer.getvalue().decode() for answer in answers]

    assert not any("canteen" in answer for answer in told(hub))
    publish_fact(fact_id=fact.pk, actor=factories.COMMAND, now=factories.NOW)
    assert all("canteen" in answer for answer in told(hub))
    assert not any("fact-owner" in answer for answer in told(hub))
    assert not any("canteen" in answer for answer in told(other))
    own = hub.client.get("/facts", user_id=reader.external_id)
    assert own.json()["results"] == []


def test_a_namesakes_conversation_and_episodes_are_told_to_nobody_else(hub: Hub, other: Hub) -> None:
    """The same ids in another tenant, and another person of the same one."""
    person = factories.end_user(hub.tenant, external_id="u1")
    factories.end_user(other.tenant, external_id="u1")
    factories.end_user(hub.tenant, external_id="u2")
    factories.episode(factories.session(person, [("user", SECRET)], session_id="s1"), f"{SECRET} in short")

    def told(to: Hub, user_id: str) -> list[str]:
        asked = {"user_id": user_id, "query": SECRET}
        messages = asked | {"session_id": "s1", "include": ["episodes", "working_memory"]}
        answers = [to.client.post("/context", messages), to.client.post("/search", asked | {"kinds": ["episode"]})]
        assert [answer.status_code for answer in answers] == [200, 200]
        return [answer.getvalue().decode() for answer in answers]

    assert [SECRET in answer for answer in told(hub, "u1")] == [True, True]
    for nobody in (told(other, "u1"), told(hub, "u2"), told(hub, "u3")):
        assert [SECRET in answer for answer in nobody] == [False, False]
        assert '"messages":[]' in nobody[0]


@pytest.mark.parametrize("whose", ["another tenant's", "another person's"])
def test_what_a_statement_rests_on_is_the_persons_own(hub: Hub, other: Hub, whose: str) -> None:
    """A foreign turn or fact answers as one that never existed; the very same ids do for their owner."""
    owner = other if whose == "another tenant's" else hub
    theirs, nobody = populated(owner.tenant), Ids()
    turn = str(Session.objects.get(pk=theirs.session).turns.get(number=1).pk)

    def state(to: Hub, user_id: str, turn_id: str, fact_id: str) -> Any:
        relations = [{"type": "derived_from", "target_id": fact_id}]
        stated = {"user_id": user_id, "content": "Drinks tea", "category": "other"}
        return to.client.post("/facts", stated | {"evidence": [turn_id], "relations": relations})

    # Known already: nobody is made for a refusal anyway.
    factories.end_user(hub.tenant, external_id="u1")
    before = everything_of(owner)
    foreign = state(hub, "u1", turn, theirs.fact)
    assert foreign.status_code == 400
    assert [fault["pointer"] for fault in foreign.json()["errors"]] == ["/evidence/0", "/relations/0/target_id"]
    assert said(foreign, theirs) == said(state(hub, "u1", nobody.session, nobody.fact), nobody)
    assert everything_of(owner) == before
    assert state(owner, theirs.user_id, turn, theirs.fact).status_code == 201
