"""What keys get of a restricted person: every operation of the schema, so that a new one cannot be forgotten."""

from typing import Any

import pytest

from memories.models import EndUser, ExtractionRun
from memories.privacy import cases
from tests import factories
from tests.api.calls import SECRET, Ids, populated, send
from tests.api.client import operations
from tests.api.conftest import Hub
from tests.api.test_isolation import everything_of
from tests.database import undone
from tests.factories import COMMAND, NOW

# Nothing is stored, and 423 says so.
STORING = {
    *("postTurns", "postTurnsBulk", "flushSession", "endSession", "deleteSession", "addFact", "changeFact"),
    *("deleteFact", "restoreFact", "giveFactFeedback", "putMemory", "changeEpisode", "deleteEpisode", "clearMemory"),
    *("writeProfileSection", "changeUser", "retryExtraction", "deleteTurn", "redactTurn"),
    "deleteFacts",
    *("writeFile", "editFile", "uploadFiles", "deleteFile", "restoreFile"),
    *("writeDiaryEntry", "deleteDiaryEntry", "addGroupFact", "deleteGroupFact", "setGroupMember"),
    *("putStoreItem", "deleteStoreItem", "startDream", "restoreDream"),
    *("addTriple", "invalidateTriple", "supersedeTriple"),
    *("deleteGroup", "deleteAttachment"),
    *("postTrajectory", "postTrajectorySteps", "changeTrajectory", "deleteTrajectory"),
}
# Nothing of one object is told.
LOCKED = {
    *("getSession", "listTurns", "getFact", "listFactHistory", "getEpisode", "readFile", "listFileHistory", "getDream"),
    *("previewExtraction", "getTrajectory", "listTrajectorySteps"),
    *("listSkills", "getSkill", "listSkillVersions"),
    *("getAttachment", "listPassages"),
}
# As if nothing was known.
EMPTY = {
    "listSessions",
    "listFacts",
    "listEpisodes",
    "getProfile",
    "getPersonProfile",
    "getMemory",
    "listFiles",
    *("listDiary", "listTrajectories"),
    "listAttachments",
    "listDreams",
    "globFiles",
    "grepFiles",
    *("listGroups", "listGroupFacts"),
    *("listEntityTriples", "listRelationTriples", "listGraphTimeline"),
}
# Each by itself, as if it were not there.
ONE_BY_ONE = {"downloadFiles"}
UNSEEN = {"getStoreItem", "searchStoreItems", "listStoreNamespaces", "batchStore"}
COUNTED = {"getGraphStats"}
SAID_SO = {"getContext", "search", "answerQuestion"}
# Who they are, and how the work on them stands.
AS_EVER = {
    *("listUsers", "getUser", "listExtractions", "getExtraction"),
    *("createPrivacyRequest", "getPrivacyRequest", "takePrivacyExport", "personLink"),
    # Of no person.
    *("listAgents", "getAgent", "changeAgent", "listProfiles"),
    *("getContentPolicy", "putContentPolicy", "listContentPolicyVersions", "restoreContentPolicy"),
    *("listContentPolicyTopics", "listContentPolicyDrops"),
    *("startPolicyDryRun", "getPolicyDryRun", "listPolicyDryRunFindings", "deletePolicyDryRunFindings"),
    # Of a group; and whoever is restricted may leave it.
    *("addGroup", "getGroup", "changeGroup", "listGroupMembers", "removeGroupMember"),
    # Of many people.
    *("listImports", "createImport", "getImport", "pauseImport", "resumeImport", "undoImport"),
}

pytestmark = pytest.mark.usefixtures("with_model")


@pytest.fixture
def ids(hub: Hub) -> Ids:
    return populated(hub.tenant)


def restrict(hub: Hub, ids: Ids, kind: str = "erasure") -> None:
    """As an erasure case does."""
    case = cases.open_case(tenant=hub.tenant, user_id=ids.user_id, type=kind, actor=COMMAND, now=NOW)
    cases.verify_identity(case_id=case.pk, expected_version=1, how="shell", actor=COMMAND, now=NOW)


def test_every_operation_has_its_place() -> None:
    places = (STORING, LOCKED, EMPTY, ONE_BY_ONE, UNSEEN, COUNTED, SAID_SO, AS_EVER)
    assert set().union(*places) == operations().keys()
    assert sum(map(len, places)) == len(operations())


def test_answers_423_and_changes_nothing(hub: Hub, ids: Ids) -> None:
    restrict(hub, ids)
    before = everything_of(hub)
    for operation in sorted(STORING | LOCKED):
        answer = send(hub.client, operation, ids)
        assert (answer.status_code, answer.json()["code"]) == (423, "restricted"), operation
    assert everything_of(hub) == before


def test_which_it_does_not_otherwise(hub: Hub, ids: Ids) -> None:
    # Another type of case restricts nobody.
    restrict(hub, ids, kind="access")
    for operation in sorted(STORING | LOCKED):
        with undone():
            assert send(hub.client, operation, ids).status_code in (200, 201, 202, 204, 409), operation


def test_tells_nothing(hub: Hub, ids: Ids) -> None:
    def told(operation: str) -> Any:
        answer = send(hub.client, operation, ids)
        assert answer.status_code == 200, operation
        return answer.json()

    for operation in sorted(EMPTY | SAID_SO):
        known = told(operation)
        assert SECRET in str(known) or known["results"], operation
    restrict(hub, ids)
    for operation in sorted(EMPTY | SAID_SO):
        now = told(operation)
        assert SECRET not in str(now), operation
        assert "s-1" not in str(now), operation
        # The first file is the tenant's, the same for everybody.
        rows = [row for row in now.get("results", []) if row.get("path") != "/memories/AGENTS.md"]
        assert rows == [], operation
        assert now.get("restricted", False) == (operation in SAID_SO), operation


def test_the_store_shows_nothing(hub: Hub, ids: Ids) -> None:
    def shown(operation: str) -> bool:
        answer = send(hub.client, operation, ids)
        assert answer.status_code == 200, operation
        return ids.user_id in answer.content.decode()

    assert all(shown(operation) for operation in UNSEEN)
    restrict(hub, ids)
    assert not any(shown(operation) for operation in UNSEEN)


def test_a_graph_counts_nothing(hub: Hub, ids: Ids) -> None:
    [operation] = COUNTED
    assert send(hub.client, operation, ids).json()["triples"] > 0
    restrict(hub, ids)
    assert send(hub.client, operation, ids).json()["triples"] == 0


def test_goes_on(hub: Hub, ids: Ids) -> None:
    restrict(hub, ids)
    for operation in sorted(AS_EVER):
        with undone():
            answer = send(hub.client, operation, ids)
            other = {"createPrivacyRequest": 202, "addGroup": 201, "removeGroupMember": 204, "personLink": 201}
            other |= {"startPolicyDryRun": 202, "deletePolicyDryRunFindings": 202}
            # It runs already.
            other |= {"createImport": 202, "resumeImport": 409, "undoImport": 202}
            assert answer.status_code == other.get(operation, 200), operation


def test_files_that_are_downloaded_are_not_there(hub: Hub, ids: Ids) -> None:
    assert send(hub.client, "downloadFiles", ids).json()["results"][0]["content"] == SECRET
    restrict(hub, ids)
    [file] = send(hub.client, "downloadFiles", ids).json()["results"]
    assert (file["content"], file["error"]) == (None, "file_not_found")


def test_the_second_name_of_a_restricted_person_is_restricted(hub: Hub, ids: Ids) -> None:
    person = EndUser.objects.get(external_id=ids.user_id)
    factories.end_user(hub.tenant, external_id="another name", merged_into=person)
    restrict(hub, ids)
    other = Ids(user_id="another name")
    for operation in ("postTurns", "postTurnsBulk", "addFact", "putMemory", "writeProfileSection", "changeUser"):
        assert send(hub.client, operation, other).status_code == 423
    for operation in sorted(EMPTY | ONE_BY_ONE | SAID_SO):
        assert SECRET not in send(hub.client, operation, other).content.decode()


def test_a_facts_reader_is_not_told_of_a_restricted_persons_public_facts(hub: Hub, ids: Ids) -> None:
    public = factories.fact(EndUser.objects.get(external_id=ids.user_id), "The office closes at five", scope="public")
    factories.end_user(hub.tenant, external_id="reader")

    def served() -> bool:
        return public.content in hub.client.post("/context", {"user_id": "reader"}).json()["memory"]

    assert served()
    restrict(hub, ids)
    assert not served()


def test_runs_tell_no_content(hub: Hub, ids: Ids) -> None:
    restrict(hub, ids)
    assert ExtractionRun.objects.exists()
    assert SECRET not in send(hub.client, "listExtractions", ids).content.decode()
