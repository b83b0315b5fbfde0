"""Bad input is refused with its place and changes nothing: what each operation checks, beyond what all of them do."""

import uuid
from typing import Any

from tests.api.calls import CALLS, SECRET, populated
from tests.api.client import BASE, operations
from tests.api.conftest import Hub
from tests.api.test_hostile_input import rows

NOBODYS = str(uuid.uuid4())
LEFT_OUT: Any = object()
# Operation → what is given beside the valid rest, its place and the code. Changes and filters have no rest.
REFUSED: dict[str, list[tuple[dict[str, Any], str, str]]] = {
    "getContext": [
        ({"query": "x" * 20_001}, "/query", "max_length"),
        ({"query": 5}, "/query", "invalid"),
        ({"max_tokens": -1}, "/max_tokens", "min_value"),
        ({"max_tokens": 8001}, "/max_tokens", "max_value"),
        ({"max_tokens": True}, "/max_tokens", "invalid"),
        ({"max_tokens": "5"}, "/max_tokens", "invalid"),
        ({"max_tokens": 5.0}, "/max_tokens", "invalid"),
        ({"max_tokens": None}, "/max_tokens", "null"),
        ({"include": "facts"}, "/include", "not_a_list"),
        ({"include": ["facts", 5]}, "/include/1", "invalid_choice"),
        ({"tokenizer": "p50k_base"}, "/tokenizer", "invalid_choice"),
        ({"tokenizer": {}}, "/tokenizer", "invalid_choice"),
        ({"roles": "admin"}, "/roles", "not_a_list"),
        ({"roles": ["x" * 101]}, "/roles/0", "max_length"),
        ({"limits": []}, "/limits", "invalid"),
        ({"limits": {"facts": -1}}, "/limits/facts", "min_value"),
        ({"limits": {"facts": 501}}, "/limits/facts", "max_value"),
        ({"limits": {"episodes": 101}}, "/limits/episodes", "max_value"),
        ({"limits": {"fact": 5}}, "/limits/fact", "unknown_field"),
        ({"session_id": "a\nb"}, "/session_id", "control"),
        ({"session_id": "x" * 256}, "/session_id", "max_length"),
        ({"if_revision": 5}, "/if_revision", "invalid"),
        ({"agent_id": ""}, "/agent_id", "blank"),
        ({"as_of": "1969-12-31T00:00:00Z"}, "/as_of", "year"),
        ({"as_of": "2023-13-01"}, "/as_of", "invalid"),
    ],
    "search": [
        ({"query": ""}, "/query", "blank"),
        ({"query": "x" * 20_001}, "/query", "max_length"),
        ({"kinds": []}, "/kinds", "min_length"),
        ({"kinds": ["folder"]}, "/kinds/0", "invalid_choice"),
        ({"limit": 0}, "/limit", "min_value"),
        ({"limit": 101}, "/limit", "max_value"),
        ({"filters": {"colour": "red"}}, "/filters/colour", "unknown_field"),
        ({"filters": {"since": "yesterday"}}, "/filters/since", "invalid"),
        ({"filters": {"category": "pets"}}, "/filters/category", "invalid_choice"),
        ({"explain": "yes"}, "/explain", "invalid"),
        ({"as_of": "yesterday"}, "/as_of", "invalid"),
    ],
    "addFact": [
        ({"content": LEFT_OUT}, "/content", "required"),
        ({"content": "\u202e\u200b \U000e0041"}, "/content", "blank"),
        ({"content": "x" * 2001}, "/content", "max_length"),
        ({"content": ["x"]}, "/content", "invalid"),
        ({"category": "likes"}, "/category", "invalid_choice"),
        ({"category": None}, "/category", "null"),
        ({"confidence": 1.01}, "/confidence", "max_value"),
        ({"confidence": -0.1}, "/confidence", "min_value"),
        ({"confidence": True}, "/confidence", "invalid"),
        ({"importance": 0.19}, "/importance", "min_value"),
        ({"key": "x" * 101}, "/key", "max_length"),
        ({"value": 5}, "/value", "invalid"),
        ({"tags": "drink"}, "/tags", "not_a_list"),
        ({"tags": [""]}, "/tags/0", "blank"),
        ({"tags": ["x"] * 101}, "/tags", "max_length"),
        ({"scope": "public"}, "/scope", "operators_only"),
        ({"allowed_users": ["a\x07"]}, "/allowed_users/0", "control"),
        ({"expires_at": "soon"}, "/expires_at", "invalid"),
        ({"expires_at": "2001-01-01T00:00:00Z"}, "/expires_at", "past"),
        ({"structured": []}, "/structured", "invalid"),
        ({"pinned": True}, "/pinned", "unknown_field"),
        ({"trust": "operator"}, "/trust", "unknown_field"),
        ({"stated_by": "operator"}, "/stated_by", "invalid_choice"),
        ({"stated_by": None}, "/stated_by", "null"),
        ({"stated_by": ["user"]}, "/stated_by", "invalid_choice"),
        ({"source": "corrected_memory"}, "/source", "operators_only"),
        ({"source": "gossip"}, "/source", "invalid_choice"),
        ({"raw": "x" * 2001}, "/raw", "max_length"),
        ({"evidence": [7]}, "/evidence/0", "invalid"),
        ({"evidence": [NOBODYS] * 21}, "/evidence", "max_length"),
        ({"evidence": [NOBODYS]}, "/evidence/0", "does_not_exist"),
        ({"relations": [{"type": "supersedes", "target_id": NOBODYS}]}, "/relations/0/type", "not_stated"),
        ({"relations": [{"type": "likes", "target_id": NOBODYS}]}, "/relations/0/type", "invalid_choice"),
        ({"relations": [{"type": "related_to"}]}, "/relations/0/target_id", "required"),
        ({"relations": [{"type": "related_to", "target_id": NOBODYS}]}, "/relations/0/target_id", "does_not_exist"),
        ({"valid_from": "2098-01-01T00:00:00Z"}, "/valid_from", "future"),
        ({"valid_from": "May"}, "/valid_from", "invalid"),
    ],
    "changeFact": [
        ({}, "", "empty"),
        ({"content": None}, "/content", "null"),
        ({"content": " "}, "/content", "blank"),
        ({"category": "likes"}, "/category", "invalid_choice"),
        ({"confidence": "high"}, "/confidence", "invalid"),
        ({"importance": 0.1}, "/importance", "min_value"),
        ({"scope": "public"}, "/scope", "operators_only"),
        ({"pinned": "yes"}, "/pinned", "invalid"),
        ({"locked": None}, "/locked", "null"),
        ({"status": "active"}, "/status", "unknown_field"),
        ({"version": 3}, "/version", "unknown_field"),
        ({"user_id": "u2"}, "/user_id", "unknown_field"),
    ],
    "restoreFact": [
        ({"version": 0}, "/version", "min_value"),
        ({"version": 2**31}, "/version", "max_value"),
        ({"version": 2**70}, "", "number"),
        *(({"version": bad}, "/version", "invalid") for bad in (True, "1", 1.5, [1])),
    ],
    "giveFactFeedback": [
        ({"useful": LEFT_OUT}, "/useful", "required"),
        ({"useful": 1}, "/useful", "invalid"),
        ({"useful": None}, "/useful", "null"),
        ({"why": "x"}, "/why", "unknown_field"),
    ],
    "changeEpisode": [
        ({}, "", "empty"),
        ({"summary": " \x07"}, "/summary", "blank"),
        ({"summary": "x" * 201}, "/summary", "max_length"),
        ({"key_topics": "tea"}, "/key_topics", "not_a_list"),
        ({"outcomes": [""]}, "/outcomes/0", "blank"),
        ({"actions_taken": ["x"] * 21}, "/actions_taken", "max_length"),
        ({"importance": 1.1}, "/importance", "max_value"),
        ({"quality": 1}, "/quality", "unknown_field"),
    ],
    "changeUser": [
        ({}, "", "empty"),
        ({"display_name": None}, "/display_name", "null"),
        ({"display_name": "x" * 256}, "/display_name", "max_length"),
        ({"time_zone": "Mars/Olympus"}, "/time_zone", "invalid"),
        ({"time_zone": "../etc/passwd"}, "/time_zone", "invalid"),
        ({"language": "Chinese!"}, "/language", "invalid"),
        ({"metadata": []}, "/metadata", "invalid"),
        ({"capture": "no"}, "/capture", "invalid"),
        ({"restricted": False}, "/restricted", "unknown_field"),
    ],
    "changeAgent": [
        ({}, "", "empty"),
        ({"agent_id": "other"}, "/agent_id", "unknown_field"),
        ({"recall": "no"}, "/recall", "invalid"),
        ({"guidance": None}, "/guidance", "null"),
        ({"guidance": "x" * 4001}, "/guidance", "max_length"),
    ],
    "writeProfileSection": [
        ({"summary": None}, "/summary", "null"),
        ({"summary": 5}, "/summary", "invalid"),
        ({"summary": "x" * 4001}, "/summary", "max_length"),
        ({"version": 1}, "/version", "unknown_field"),
    ],
    "putMemory": [
        ({"facts": [{"content": ""}]}, "/facts/0/content", "blank"),
        ({"facts": [{"content": "ok"}, {"category": "goal"}]}, "/facts/1/content", "required"),
        ({"facts": [{"content": "ok", "confidence": 1.5}]}, "/facts/0/confidence", "max_value"),
        ({"facts": {"content": "ok"}}, "/facts", "not_a_list"),
        ({"user": LEFT_OUT, "facts": LEFT_OUT}, "", "empty"),
        ({"user": []}, "/user", "invalid"),
        ({"user": {"topOfMind": "text"}}, "/user/topOfMind", "invalid"),
        ({"history": {"recentMonths": {"summary": 7}}}, "/history/recentMonths/summary", "invalid"),
        ({"stated_by": "operator"}, "/stated_by", "invalid_choice"),
        ({"user_id": "u2"}, "/user_id", "mismatch"),
        ({"facts": [{"content": "ok"}, {"content": "no", "extra": "x" * 4000}]}, "/facts/1", "unknown_size"),
    ],
    "flushSession": [
        ({"user_id": LEFT_OUT}, "/user_id", "required"),
        ({"session_id": ""}, "/session_id", "blank"),
        ({"flush": True}, "/flush", "unknown_field"),
    ],
    "personLink": [
        ({"user_id": LEFT_OUT}, "/user_id", "required"),
        ({"ttl": 9}, "/ttl", "min_value"),
        ({"ttl": 3601}, "/ttl", "max_value"),
        ({"ttl": "300"}, "/ttl", "invalid"),
        ({"language": "fr"}, "/language", "invalid_choice"),
        ({"allow": ["fly"]}, "/allow/0", "invalid_choice"),
        ({"allow": ["correct", "pause"]}, "/allow/1", "not_allowed"),
        *(
            ({"embed_origins": [origin]}, "/embed_origins/0", "invalid")
            for origin in ("app.example.org", "https://*.example.org", "https://a.org/path", "http://a.org", "'none'")
        ),
        ({"token": "x"}, "/token", "unknown_field"),
    ],
    "createPrivacyRequest": [
        ({"type": "forgetting"}, "/type", "invalid_choice"),
        ({"type": None}, "/type", "null"),
        ({"channel": "x" * 41}, "/channel", "max_length"),
        ({"reference": "x" * 256}, "/reference", "max_length"),
        ({"state": "approved"}, "/state", "unknown_field"),
        ({"asked_by": "subject"}, "/asked_by", "unknown_field"),
    ],
    "redactTurn": [
        ({"texts": []}, "/texts", "min_length"),
        ({"texts": [""]}, "/texts/0", "blank"),
        ({"texts": [1]}, "/texts/0", "invalid"),
        ({"texts": ["Not said"]}, "/texts/0", "not_in_turn"),
        ({"texts": ["a"] * 101}, "/texts", "max_length"),
    ],
    "addTriple": [
        *(
            ({"valid_from": bad}, "/valid_from", "invalid")
            for bad in (
                "2024-03-01T10:00:00+01:00",
                "2024-03-01T10:00:00",
                "2024-03-01 10:00:00Z",
                "soon",
                "2024-02-30",
            )
        ),
        ({"valid_from": "2025-01-01", "valid_to": "2024-01-01"}, "/valid_to", "inverted"),
    ],
    "writeDiaryEntry": [
        ({"content": "\n \n"}, "/content", "blank"),
        ({"content": "\u200b"}, "/content", "invalid"),
        ({"content": "x" * 20_001}, "/content", "max_length"),
    ],
    "addGroup": [({"name": " "}, "/name", "blank"), ({"name": "x" * 101}, "/name", "max_length")],
    "addGroupFact": [
        ({"content": "\u200b"}, "/content", "blank"),
        ({"content": "x" * 1_001}, "/content", "max_length"),
    ],
    "listFacts": [
        ({}, "user_id", "required"),
        ({"user_id": ""}, "user_id", "required"),
        ({"user_id": "a\nb"}, "user_id", "control"),
        ({"user_id": "u1", "type": "skill"}, "type", "invalid_choice"),
        ({"user_id": "u1", "min_confidence": "nan"}, "min_confidence", "invalid"),
        ({"user_id": "u1", "min_confidence": "1.1"}, "min_confidence", "max_value"),
        ({"user_id": "u1", "pinned": "perhaps"}, "pinned", "invalid"),
        ({"user_id": "u1", "updated_since": "yesterday"}, "updated_since", "invalid"),
        ({"user_id": "u1", "as_of": "yesterday"}, "as_of", "invalid"),
        ({"user_id": "u1", "sort": "content"}, "sort", "invalid_choice"),
        ({"user_id": "u1", "category": "likes"}, "category", "invalid_choice"),
        ({"user_id": "u1", "status": "gone"}, "status", "invalid_choice"),
        ({"user_id": "u1", "categroy": "skill"}, "categroy", "unknown_field"),
        ({"user_id": "u1", "q": "x" * 201}, "q", "max_length"),
    ],
    "listEpisodes": [
        ({}, "user_id", "required"),
        ({"user_id": "u1", "status": "rejected"}, "status", "invalid_choice"),
        ({"user_id": "u1", "category": "goal"}, "category", "unknown_field"),
        ({"user_id": "u1", "q": "x" * 201}, "q", "max_length"),
    ],
    "listSessions": [({}, "user_id", "required")],
    "getProfile": [({}, "user_id", "required")],
    "listTurns": [({"sort": "created_at"}, "sort", "invalid_choice")],
    "listExtractions": [
        ({"status": "lost"}, "status", "invalid_choice"),
        ({"user_id": "x" * 256}, "user_id", "max_length"),
        ({"since": "x"}, "since", "unknown_field"),
    ],
    "listDiary": [
        ({"user_id": "u1", "last": "0"}, "last", "min_value"),
        ({"user_id": "u1", "last": "201"}, "last", "max_value"),
        ({"user_id": "u1", "last": "x"}, "last", "invalid"),
        ({"user_id": "u1", "q": "a " * 21}, "q", "max_length"),
    ],
    "getGraphStats": [({"user_id": "u1", "as_of": "2024-03-01T10:00:00"}, "as_of", "invalid")],
    "deleteFact": [({"hard": "maybe"}, "hard", "invalid")],
    "deleteEpisode": [({"hard": "2"}, "hard", "invalid")],
}


def test_it_is_refused_with_its_place_and_leaves_no_trace(hub: Hub) -> None:
    ids = populated(hub.tenant)
    before, found, wanted = rows(), {}, {}
    for operation, refused in REFUSED.items():
        method, template = operations()[operation]
        call = CALLS[operation](ids)
        # Nobody is made for a refusal, and no text is a double.
        new = {"user_id": "new", "content": f"{SECRET} again"} if operation == "addFact" else {}
        for place, (given, pointer, code) in enumerate(refused):
            body: dict[str, Any] | None = None
            if call.body is not None:
                body = given if operation.startswith("change") else {**call.body, **new, **given}
                body = {name: value for name, value in body.items() if value is not LEFT_OUT}
            query = call.query if call.body is not None else given
            answer = hub.client.call(method, template.removeprefix(BASE).format(**call.path), body, query=query)
            faults = [(one["pointer"], one["code"]) for one in answer.json()["errors"]] if answer.content else []
            wanted[operation, place] = (400, (pointer, code))
            found[operation, place] = (answer.status_code, (pointer, code) if (pointer, code) in faults else faults)
    assert found == wanted
    assert rows() == before
