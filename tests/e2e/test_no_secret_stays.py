"""A secret posted through any operation, in any field that takes text, is in no column of any table afterwards."""

from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django import Settings

from memories import conf
from memories.attachments import reading
from memories.extraction import consolidation
from memories.models import SessionQueue, Tenant
from tests import factories
from tests.api.calls import CALLS, FILE, Ids, populated
from tests.api.calls import SECRET as KNOWN
from tests.api.client import BASE, HubClient, operations, schema
from tests.curation.marks import places_of
from tests.factories import NOW

pytestmark = pytest.mark.django_db

SECRET, HARMLESS = "Tr0ub4dor-9x", "Oosterpoort"
# Both in its last 40 characters: what is short takes no more.
SAYING = f"I live in {HARMLESS}. My password is {SECRET}"
SHORT = SAYING[-40:]
# The caller's own names for things are compared as they stand, and so are kept as they stand.
NAMES = {"user_id", "session_id", "agent_id", "external_id", "allowed_users", "allowed_roles"}
# Words of a fixed form.
FORMS = {
    "time_zone": "Europe/Amsterdam", "language": "nl", "if_revision": "r", "roles": ["r"], "channel": "email",
    "evidence": [], "relations": [], "valid_from": "2026-11-01T00:00:00Z", "path": FILE, "index": ["note"],
    "attachments": [],
}  # fmt: skip
WRITERS = (
    "postTurns", "postTurnsBulk", "addFact", "changeFact", "writeProfileSection", "changeUser", "changeEpisode",
    "putMemory", "createPrivacyRequest", "changeAgent", "putContentPolicy", "writeFile", "editFile", "uploadFiles",
    "putStoreItem", "batchStore", "writeDiaryEntry", "addTriple", "supersedeTriple", "addGroup", "changeGroup",
    "addGroupFact", "postTrajectory", "postTrajectorySteps", "changeTrajectory",
)  # fmt: skip
STORE = ("putStoreItem", "batchStore")
GRAPH = ("addTriple", "supersedeTriple")
# They take no text, or keep none of it; what is in an imported file is redacted as what is posted (tests/imports).
OTHERS = {
    "createImport", "resumeImport", "previewExtraction", "personLink", "restoreContentPolicy",
    "startPolicyDryRun",
    "getContext", "search", "answerQuestion", "flushSession", "endSession", "restoreFact", "giveFactFeedback",
    "deleteFacts", "redactTurn", "restoreFile", "downloadFiles", "globFiles", "grepFiles", "searchStoreItems",
    "listStoreNamespaces", "invalidateTriple", "startDream", "setGroupMember",
}  # fmt: skip


@pytest.fixture
def tenant(db: None, settings: Settings) -> Tenant:
    settings.MEMORYHUB_LLM = conf.LLM_RULES
    return factories.tenant()


def texts_of(given: dict[str, Any], name: str = "") -> Iterator[Any]:
    """Values of this JSON schema that say both words wherever they can; one for each of its forms."""
    if "$ref" in given:
        yield from texts_of(schema()["components"]["schemas"][given["$ref"].rsplit("/", 1)[1]], name)
    elif name in FORMS:
        yield FORMS[name]
    elif forms := given.get("oneOf") or given.get("allOf"):
        for form in forms:
            yield from texts_of(form, name)
    elif "enum" in given:
        yield given["enum"][0]
    else:
        kinds = given["type"] if isinstance(given["type"], list) else [given["type"]]
        yield from _of_kind(kinds[0], given, name)


def _of_kind(kind: str, given: dict[str, Any], name: str) -> Iterator[Any]:
    if kind == "string":
        yield (
            "2027-03-03T09:12:00Z" if given.get("format") == "date-time" else f"own-{name}" if name in NAMES else SAYING
        )
    elif kind == "array":
        items = list(texts_of(given["items"], name))
        # Each message has its own external_id.
        yield [{**item, "external_id": f"m{n}"} if name == "messages" else item for n, item in enumerate(items)]
    elif kind == "object" and "properties" in given:
        known = {field: list(texts_of(part, field)) for field, part in given["properties"].items()}
        for n in range(max(map(len, known.values()))):
            yield {field: values[min(n, len(values) - 1)] for field, values in known.items()}
    elif kind == "object":
        yield {"note": SAYING, "deep": [{"say": [SAYING]}], SAYING: 1, "password": SECRET}
    elif kind in ("integer", "number"):
        yield given.get("default", given.get("maximum", 1))
    elif kind == "boolean":
        yield name in ("flush", "capture", "serve")


def body_of(operation: str) -> dict[str, Any]:
    method, path = operations()[operation]
    wanted = schema()["paths"][path][method.lower()]["requestBody"]["content"]["application/json"]["schema"]
    body: dict[str, Any] = next(texts_of(wanted))
    return body


def send(tenant: Tenant, operation: str, ids: Ids) -> Any:
    """Call it with a body full of both words, about the known person; its answer may be kept under a key."""
    _, plaintext = factories.api_key(tenant)
    method, template = operations()[operation]
    call = CALLS[operation](ids)
    body = body_of(operation)
    body |= dict.fromkeys({"user_id", "about_user_id"} & body.keys(), ids.user_id)
    if "allowed_users" in body:
        body["allowed_users"] = [ids.user_id]
    _say_in_parts(body)
    if operation == "editFile":
        # The known file is every agent's.
        body |= {"old_string": KNOWN, "agent_id": None}
    if operation in STORE:
        # A key is compared as it stands, too.
        body = body_of("putStoreItem") | {"namespace": ["memories", ids.user_id], "key": "k"}
    if operation == "batchStore":
        body = {"operations": [{"op": "put", **body}]}
    if operation in GRAPH:
        # Types are short, and a replacement is of what is known.
        new = {"subject", "predicate", "object"} if operation == "addTriple" else {"new_object"}
        kinds = {"subject_type", "object_type"} & body.keys()
        body = {
            **(call.body or {}),
            **dict.fromkeys(new, SAYING),
            **dict.fromkeys(kinds, SHORT),
        }
    path = template.removeprefix(BASE).format(**call.path)
    headers = {"Idempotency-Key": "k"} if method == "POST" else {}
    return HubClient(plaintext).call(method, path, body, query=call.query, headers=headers)


def _say_in_parts(body: dict[str, Any]) -> None:
    if "content" in body and isinstance(body["content"], list):
        body["content"] = SAYING
    for part in body.get("messages", []) + [m for c in body.get("conversations", []) for m in c["messages"]]:
        if isinstance(part["content"], list):
            part["content"] = [{"type": "text", "text": SAYING}, {"type": "other", "note": SAYING}]
        part["attachments"] = [{"name": SAYING, "media_type": "text/markdown", "text": f"# {SAYING}\n\n{SAYING}"}]


def extract_all() -> None:
    for session_id in list(SessionQueue.objects.due().values_list("pk", flat=True)):
        consolidation.consolidate(session_id=session_id, now=NOW)
    reading.run_slice(now=NOW, seconds=60)


def test_all_operations_with_a_body_are_here() -> None:
    bodies = {
        name
        for name, (method, path) in operations().items()
        if "requestBody" in schema()["paths"][path][method.lower()]
    }
    assert bodies == {*WRITERS, *OTHERS}


@pytest.mark.parametrize("operation", WRITERS)
def test_a_secret_is_nowhere_and_what_stands_beside_it_is_kept(tenant: Tenant, operation: str) -> None:
    """The positive control: the harmless word of the same fields is in all of their columns."""
    response = send(tenant, operation, populated(tenant))
    assert response.status_code < 300, response.content
    extract_all()
    assert places_of(SECRET) == []
    assert places_of("[redacted:password]")
    # The caller sees what was cut, but for the store: its answers are those of the stock SDK's server.
    assert operation in STORE or "redact" in response.content.decode()
    assert SECRET not in response.content.decode()
    assert KEPT[operation] <= set(places_of(HARMLESS))


TURNS = {f"memories_turn.{name}" for name in ("content", "parts", "name", "tool_calls", "metadata")} | {
    "memories_attachment.name", "memories_passage.content", "memories_passage.place"
}  # fmt: skip
FACTS = {f"memories_fact.{name}" for name in ("content", "structured", "value", "key", "tags")}
REVISIONS = {"memories_factrevision.after"}
STEPS = {"memories_trajectorystep.content", "memories_trajectorystep.arguments", "memories_trajectorystep.tool"}
KEPT = {
    "postTurns": TURNS | {"memories_fact.content", "memories_fact.raw", "memories_factevidence.quote"} | REVISIONS,
    "postTurnsBulk": TURNS | {"memories_fact.content"},
    "addFact": FACTS | REVISIONS,
    "changeFact": FACTS | REVISIONS,
    "writeProfileSection": {"memories_profilesection.summary", "memories_profilerevision.after"},
    "changeUser": {"memories_enduser.display_name", "memories_enduser.metadata"},
    "changeEpisode": {f"memories_episode.{name}" for name in ("summary", "key_topics", "actions_taken", "outcomes")},
    "putMemory": {f"memories_fact.{name}" for name in ("content", "document", "source_error")} | REVISIONS,
    "createPrivacyRequest": {"memories_privacycase.reference"},
    "changeAgent": {"memories_agent.guidance"},
    "putContentPolicy": {"memories_contentpolicy.categories"},
    "addTriple": {"memories_graphentity.name", "memories_graphentity.type"},
    "supersedeTriple": {"memories_graphentity.name", "memories_graphentity.type"},
    "writeFile": {"memories_memoryfile.content", "memories_fileversion.content"},
    "editFile": {"memories_memoryfile.content", "memories_fileversion.content"},
    "uploadFiles": {"memories_memoryfile.content", "memories_fileversion.content"},
    "putStoreItem": {"memories_storeitem.value"},
    "writeDiaryEntry": {"memories_diaryentry.content", "memories_diaryentry.topic"},
    "batchStore": {"memories_storeitem.value"},
    "postTrajectory": {
        *("memories_trajectory.task", "memories_trajectory.family", "memories_trajectory.skills_named"),
        *STEPS,
    },
    "postTrajectorySteps": STEPS,
    "changeTrajectory": {"memories_trajectory.skills_named"},
    "addGroup": {"memories_memorygroup.name"},
    "changeGroup": {"memories_memorygroup.name"},
    "addGroupFact": {"memories_groupfact.content"},
}
