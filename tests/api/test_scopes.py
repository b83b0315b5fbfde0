"""Which scope each operation needs: it alone lets in, all others together do not."""

from memories.models import Scope
from tests import factories
from tests.api.calls import CALLS, Ids, send
from tests.api.client import HubClient, operations, schema

READ, WRITE, INGEST, PRIVACY = Scope.READ, Scope.WRITE, Scope.INGEST, Scope.PRIVACY
# A batch of the store with a write in it needs that scope, too: tests/api/v1/test_store.py.
SCOPES = {
    INGEST: "postTurns postTurnsBulk flushSession endSession postTrajectory postTrajectorySteps changeTrajectory",
    READ: """
        getContext search answerQuestion listSessions getSession listTurns listFacts getFact listFactHistory getMemory
        listEpisodes
        getEpisode getProfile listProfiles getPersonProfile listFiles readFile globFiles grepFiles downloadFiles
        listFileHistory listDiary listTrajectories getTrajectory listTrajectorySteps
        listSkills getSkill listSkillVersions listAttachments getAttachment listPassages
        listGroups getGroup listGroupMembers listGroupFacts listDreams getDream listUsers getUser listAgents
        getAgent listExtractions getExtraction listEntityTriples listRelationTriples listGraphTimeline getGraphStats
        getStoreItem searchStoreItems listStoreNamespaces batchStore listImports getImport
        getContentPolicy listContentPolicyVersions listContentPolicyTopics listContentPolicyDrops
        getPolicyDryRun listPolicyDryRunFindings
    """,
    WRITE: """
        deleteTrajectory
        deleteSession deleteTurn deleteFacts redactTurn addFact changeFact deleteFact restoreFact giveFactFeedback
        putMemory clearMemory changeEpisode deleteEpisode writeProfileSection writeFile editFile uploadFiles
        deleteFile deleteAttachment
        writeDiaryEntry deleteDiaryEntry restoreFile addGroup changeGroup deleteGroup setGroupMember
        removeGroupMember addGroupFact deleteGroupFact startDream restoreDream changeUser changeAgent
        retryExtraction previewExtraction
        addTriple invalidateTriple supersedeTriple putStoreItem deleteStoreItem personLink
        putContentPolicy restoreContentPolicy startPolicyDryRun deletePolicyDryRunFindings
        createImport pauseImport resumeImport undoImport
    """,
    PRIVACY: "createPrivacyRequest getPrivacyRequest takePrivacyExport",
}
NEEDED = {name: scope for scope, names in SCOPES.items() for name in names.split()}


def test_the_table_is_complete() -> None:
    assert NEEDED.keys() == CALLS.keys() == operations().keys()


def test_the_scope_alone_lets_in(db: None) -> None:
    clients = {scope: HubClient(factories.api_key(factories.tenant(), scopes=[scope])[1]) for scope in Scope.values}
    # What they store is turns, too; and a prompt shows what is known.
    more = {"createImport": INGEST, "resumeImport": INGEST, "previewExtraction": READ}
    both = {
        scope: HubClient(factories.api_key(factories.tenant(), scopes=[scope, WRITE])[1]) for scope in more.values()
    }
    for operation, scope in NEEDED.items():
        client = both[more[operation]] if operation in more else clients[scope]
        assert send(client, operation, Ids()).status_code in (200, 201, 202, 204, 404), operation
        assert client is clients[scope] or send(clients[scope], operation, Ids()).status_code == 403


def test_all_others_do_not(db: None) -> None:
    clients = {
        scope: HubClient(factories.api_key(factories.tenant(), scopes=sorted(set(Scope.values) - {scope}))[1])
        for scope in Scope.values
    }
    for operation, scope in NEEDED.items():
        answer = send(clients[scope], operation, Ids())
        assert (answer.status_code, answer.json()["code"]) == (403, "missing_scope"), operation
        assert f"'{scope}'" in answer.json()["detail"], operation


def test_the_schema_names_it() -> None:
    for operation, scope in NEEDED.items():
        method, path = operations()[operation]
        assert f"`{scope}`" in schema()["paths"][path][method.lower()]["description"], operation


def test_head_needs_the_scope_of_get(db: None) -> None:
    tenant = factories.tenant()
    _, reader = factories.api_key(tenant, scopes=["read"])
    _, writer = factories.api_key(tenant, scopes=["write"])
    for plaintext, status in ((reader, 200), (writer, 403)):
        answer = HubClient(plaintext).http.head("/api/v1/users", headers={"Authorization": f"Bearer {plaintext}"})
        assert answer.status_code == status
