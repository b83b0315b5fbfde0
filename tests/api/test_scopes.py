"""Which scope each operation needs: it alone lets in, all others together do not."""

import pytest

from memories.models import Scope
from tests import factories
from tests.api.calls import CALLS, Ids, send
from tests.api.client import HubClient, operations, schema

READ, WRITE, INGEST, PRIVACY = Scope.READ, Scope.WRITE, Scope.INGEST, Scope.PRIVACY
NEEDED = {
    "postTurns": INGEST,
    "postTurnsBulk": INGEST,
    "flushSession": INGEST,
    "endSession": INGEST,
    "deleteSession": WRITE,
    "deleteTurn": WRITE,
    "deleteFacts": WRITE,
    "redactTurn": WRITE,
    "getContext": READ,
    "search": READ,
    "listSessions": READ,
    "getSession": READ,
    "listTurns": READ,
    "listFacts": READ,
    "addFact": WRITE,
    "getFact": READ,
    "changeFact": WRITE,
    "deleteFact": WRITE,
    "listFactHistory": READ,
    "restoreFact": WRITE,
    "giveFactFeedback": WRITE,
    "getMemory": READ,
    "putMemory": WRITE,
    "clearMemory": WRITE,
    "listEpisodes": READ,
    "getEpisode": READ,
    "changeEpisode": WRITE,
    "deleteEpisode": WRITE,
    "getProfile": READ,
    "writeProfileSection": WRITE,
    "listFiles": READ,
    "readFile": READ,
    "writeFile": WRITE,
    "editFile": WRITE,
    "globFiles": READ,
    "grepFiles": READ,
    "uploadFiles": WRITE,
    "downloadFiles": READ,
    "deleteFile": WRITE,
    "listFileHistory": READ,
    "listDiary": READ,
    "writeDiaryEntry": WRITE,
    "deleteDiaryEntry": WRITE,
    "restoreFile": WRITE,
    "listGroups": READ,
    "addGroup": WRITE,
    "getGroup": READ,
    "changeGroup": WRITE,
    "deleteGroup": WRITE,
    "listGroupMembers": READ,
    "setGroupMember": WRITE,
    "removeGroupMember": WRITE,
    "listGroupFacts": READ,
    "addGroupFact": WRITE,
    "deleteGroupFact": WRITE,
    "listDreams": READ,
    "startDream": WRITE,
    "getDream": READ,
    "restoreDream": WRITE,
    "listUsers": READ,
    "getUser": READ,
    "changeUser": WRITE,
    "listAgents": READ,
    "getAgent": READ,
    "changeAgent": WRITE,
    "createPrivacyRequest": PRIVACY,
    "getPrivacyRequest": PRIVACY,
    "listExtractions": READ,
    "getExtraction": READ,
    "retryExtraction": WRITE,
    "takePrivacyExport": Scope.PRIVACY,
    "addTriple": WRITE,
    "invalidateTriple": WRITE,
    "supersedeTriple": WRITE,
    "listEntityTriples": READ,
    "listRelationTriples": READ,
    "listGraphTimeline": READ,
    "getGraphStats": READ,
    "getStoreItem": READ,
    "putStoreItem": WRITE,
    "deleteStoreItem": WRITE,
    "searchStoreItems": READ,
    "listStoreNamespaces": READ,
    # With a write in it that scope, too: tests/api/v1/test_store.py.
    "batchStore": READ,
}


def test_the_table_is_complete() -> None:
    assert NEEDED.keys() == CALLS.keys() == operations().keys()


def test_the_scope_alone_lets_in(db: None) -> None:
    for operation, scope in NEEDED.items():
        _, plaintext = factories.api_key(factories.tenant(), scopes=[scope])
        assert send(HubClient(plaintext), operation, Ids()).status_code in (200, 201, 202, 204, 404), operation


@pytest.mark.parametrize("operation", NEEDED)
def test_all_others_do_not(db: None, operation: str) -> None:
    others = [scope for scope in Scope.values if scope != NEEDED[operation]]
    _, plaintext = factories.api_key(factories.tenant(), scopes=others)
    answer = send(HubClient(plaintext), operation, Ids())
    assert (answer.status_code, answer.json()["code"]) == (403, "missing_scope")
    assert f"'{NEEDED[operation]}'" in answer.json()["detail"]


@pytest.mark.parametrize("operation", NEEDED)
def test_the_schema_names_it(operation: str) -> None:
    method, path = operations()[operation]
    assert f"`{NEEDED[operation]}`" in schema()["paths"][path][method.lower()]["description"]


def test_head_needs_the_scope_of_get(db: None) -> None:
    tenant = factories.tenant()
    _, reader = factories.api_key(tenant, scopes=["read"])
    _, writer = factories.api_key(tenant, scopes=["write"])
    for plaintext, status in ((reader, 200), (writer, 403)):
        answer = HubClient(plaintext).http.head("/api/v1/users", headers={"Authorization": f"Bearer {plaintext}"})
        assert answer.status_code == status
