"""How many statements an answer takes, however long it is."""

import pytest

from memories.models import FactRelation, PrivacyExport
from tests import factories
from tests.api.conftest import Hub
from tests.database import statements

# Key, person, and what is listed; facts with evidence, sessions, relations of both ends and what they replaced.
BUDGETS = {"/facts": 7, "/episodes": 3, "/sessions": 2, "/extractions": 2, "/users": 2, "/agents": 2}


@pytest.mark.usefixtures("with_model")
def test_a_list(hub: Hub) -> None:
    person = factories.end_user(hub.tenant, external_id="u1")
    for number in range(3):
        session = factories.session(person, agent_id=f"agent {number}")
        fact = factories.fact(person, f"fact {number}")
        older = factories.fact(person, f"older {number}", status="superseded", superseded_by=fact)
        FactRelation.objects.create(
            tenant_id=fact.tenant_id, fact=fact, target=older, type="contradicts", created_at=factories.NOW
        )
        factories.evidence(fact, session.turns.get())
        factories.episode(session)
        factories.run(session)
        factories.end_user(hub.tenant)
    hub.client.get("/users")
    for path, budget in BUDGETS.items():
        query = {"user_id": "u1"} if budget > 2 or path == "/sessions" else {}
        assert len(hub.client.get(path, **query).json()["results"]) >= 3, path
        assert len(statements(lambda at=path, given=query: hub.client.get(at, **given))) == budget, path  # type: ignore[misc]


def test_a_context(hub: Hub) -> None:
    person = factories.end_user(hub.tenant, external_id="u1")
    factories.fact(person)
    hub.client.post("/context", {"user_id": "u1"})
    # Key, person with profile, facts, turns.
    assert len(statements(lambda: hub.client.post("/context", {"user_id": "u1"}))) == 4
    factories.session(person)
    factories.fact(person, "Lives in Leiden", status="superseded")
    # What of the turns does not hold any more.
    assert len(statements(lambda: hub.client.post("/context", {"user_id": "u1"}))) == 5


def test_a_privacy_case_whose_zip_file_is_not_read_to_tell_its_size(hub: Hub) -> None:
    case = factories.privacy_case(factories.end_user(hub.tenant), type="access", state="completed")
    for _ in range(3):
        factories.privacy_export(case)
    path = f"/privacy/requests/{case.pk}"
    assert hub.client.get(path).json()["export"]
    sent = statements(lambda: hub.client.get(path))
    # Who asks, the case with the person, its exports.
    assert len(sent) == 3
    assert not [sql for sql in sent if '"content"' in sql or '"needles"' in sql]
    assert PrivacyExport.objects.count() == 3
