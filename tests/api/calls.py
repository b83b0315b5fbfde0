"""One valid call of every operation of the live schema; tests that must cover all of them fail when one is missing."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from memories.audit import Actor
from memories.curation.facts.adding import FactDraft, add_fact
from memories.curation.facts.forgetting import forget_fact
from memories.curation.tenants.content_policy import put_policy
from memories.models import ActorKind, SessionQueue, Skill, Tenant
from tests import factories
from tests.api.client import BASE, HubClient, operations
from tests.profiles.defining import define

FILE = "/memories/notes.md"
SECRET = "暗号 xyzzy"


@dataclass(frozen=True)
class Ids:
    """Ids of one person and of what is known of them; by default of nobody."""

    user_id: str = field(default_factory=lambda: f"nobody-{uuid.uuid4()}")
    session_id: str = "s-1"
    session: str = field(default_factory=lambda: str(uuid.uuid4()))
    fact: str = field(default_factory=lambda: str(uuid.uuid4()))
    trashed: str = field(default_factory=lambda: str(uuid.uuid4()))
    episode: str = field(default_factory=lambda: str(uuid.uuid4()))
    run: str = field(default_factory=lambda: str(uuid.uuid4()))
    case: str = field(default_factory=lambda: str(uuid.uuid4()))
    turn: str = field(default_factory=lambda: str(uuid.uuid4()))
    dream: str = field(default_factory=lambda: str(uuid.uuid4()))
    agent: str = field(default_factory=lambda: str(uuid.uuid4()))
    agent_name: str = field(default_factory=lambda: f"nobody-{uuid.uuid4()}")
    entry: str = field(default_factory=lambda: str(uuid.uuid4()))
    group: str = field(default_factory=lambda: str(uuid.uuid4()))
    group_fact: str = field(default_factory=lambda: str(uuid.uuid4()))
    uploaded: str = field(default_factory=lambda: str(uuid.uuid4()))
    trial: str = field(default_factory=lambda: str(uuid.uuid4()))
    trajectory: str = field(default_factory=lambda: str(uuid.uuid4()))
    # Of a tenant, which has one of a name.
    skill: str = "a-procedure"
    attachment: str = field(default_factory=lambda: str(uuid.uuid4()))


@dataclass(frozen=True)
class Call:
    """The variable parts of a request."""

    path: dict[str, str] = field(default_factory=dict)
    query: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] | None = None


def _message(ids: Ids) -> dict[str, Any]:
    # The external_id is known too: only its own session may recognise it.
    return {"role": "user", "content": SECRET, "external_id": f"m-{ids.session_id}"}


def _relation(ids: Ids) -> dict[str, Any]:
    return {"user_id": ids.user_id, "subject": "user", "predicate": "works_at"}


CALLS: dict[str, Callable[[Ids], Call]] = {
    "postTurns": lambda ids: Call(
        body={"user_id": ids.user_id, "session_id": ids.session_id, "messages": [_message(ids)]}
    ),
    "postTurnsBulk": lambda ids: Call(
        body={"conversations": [{"user_id": ids.user_id, "session_id": ids.session_id, "messages": [_message(ids)]}]}
    ),
    "deleteTurn": lambda ids: Call(path={"turn_id": ids.turn}),
    "redactTurn": lambda ids: Call(path={"turn_id": ids.turn}, body={"texts": [SECRET]}),
    "listTrajectories": lambda ids: Call(query={"user_id": ids.user_id}),
    "postTrajectory": lambda ids: Call(
        body={"user_id": ids.user_id, "task": SECRET, "external_id": "t-1", "steps": [{"kind": "note"}]}
    ),
    "getTrajectory": lambda ids: Call(path={"trajectory_id": ids.trajectory}),
    "changeTrajectory": lambda ids: Call(path={"trajectory_id": ids.trajectory}, body={"outcome": "failed"}),
    "deleteTrajectory": lambda ids: Call(path={"trajectory_id": ids.trajectory}),
    "listTrajectorySteps": lambda ids: Call(path={"trajectory_id": ids.trajectory}),
    "postTrajectorySteps": lambda ids: Call(
        path={"trajectory_id": ids.trajectory}, body={"steps": [{"kind": "note", "content": "taken over"}]}
    ),
    "flushSession": lambda ids: Call(body={"user_id": ids.user_id, "session_id": ids.session_id}),
    "endSession": lambda ids: Call(body={"user_id": ids.user_id, "session_id": ids.session_id}),
    "deleteSession": lambda ids: Call(path={"session_id": ids.session}),
    "getContext": lambda ids: Call(
        body={
            "user_id": ids.user_id,
            "session_id": ids.session_id,
            "query": SECRET,
            "include": ["profile", "facts", "episodes", "working_memory", "turns", "unextracted"],
        }
    ),
    "search": lambda ids: Call(
        body={"user_id": ids.user_id, "query": SECRET, "kinds": ["fact", "episode", "turn", "session"]}
    ),
    "answerQuestion": lambda ids: Call(body={"user_id": ids.user_id, "question": SECRET, "searches": 1}),
    "listSessions": lambda ids: Call(query={"user_id": ids.user_id}),
    "getSession": lambda ids: Call(path={"session_id": ids.session}),
    "listTurns": lambda ids: Call(path={"session_id": ids.session}),
    "listFacts": lambda ids: Call(query={"user_id": ids.user_id, "status": "all"}),
    "addFact": lambda ids: Call(body={"user_id": ids.user_id, "content": SECRET, "category": "other"}),
    "deleteFacts": lambda ids: Call(body={"user_id": ids.user_id, "dry_run": True}),
    "getFact": lambda ids: Call(path={"fact_id": ids.fact}),
    "changeFact": lambda ids: Call(path={"fact_id": ids.fact}, body={"content": "taken over"}),
    "deleteFact": lambda ids: Call(path={"fact_id": ids.fact}, query={"hard": "true"}),
    "listFactHistory": lambda ids: Call(path={"fact_id": ids.fact}),
    "restoreFact": lambda ids: Call(path={"fact_id": ids.trashed}, body={"version": 1}),
    "giveFactFeedback": lambda ids: Call(path={"fact_id": ids.fact}, body={"useful": False}),
    "getMemory": lambda ids: Call(query={"user_id": ids.user_id}),
    "putMemory": lambda ids: Call(
        query={"user_id": ids.user_id},
        body={"user": {"topOfMind": {"summary": "taken over"}}, "facts": [{"id": ids.fact, "content": "taken over"}]},
    ),
    "clearMemory": lambda ids: Call(query={"user_id": ids.user_id}),
    "listEpisodes": lambda ids: Call(query={"user_id": ids.user_id, "status": "all"}),
    "getEpisode": lambda ids: Call(path={"episode_id": ids.episode}),
    "changeEpisode": lambda ids: Call(path={"episode_id": ids.episode}, body={"summary": "taken over"}),
    "deleteEpisode": lambda ids: Call(path={"episode_id": ids.episode}, query={"hard": "true"}),
    "getProfile": lambda ids: Call(query={"user_id": ids.user_id}),
    "listProfiles": lambda _: Call(),
    "listSkills": lambda ids: Call(query={"user_id": ids.user_id}),
    "getSkill": lambda ids: Call(path={"name": ids.skill}, query={"user_id": ids.user_id}),
    "listSkillVersions": lambda ids: Call(path={"name": ids.skill}, query={"user_id": ids.user_id}),
    "getPersonProfile": lambda ids: Call(path={"name": "travel"}, query={"user_id": ids.user_id}),
    "writeProfileSection": lambda ids: Call(
        path={"section": "top_of_mind"}, body={"user_id": ids.user_id, "summary": "taken over"}
    ),
    "listDreams": lambda ids: Call(query={"user_id": ids.user_id}),
    "startDream": lambda ids: Call(body={"user_id": ids.user_id}),
    "getDream": lambda ids: Call(path={"dream_id": ids.dream}),
    "restoreDream": lambda ids: Call(path={"dream_id": ids.dream}),
    "listImports": lambda _ids: Call(),
    "createImport": lambda _ids: Call(body={"conversations": [SECRET]}),
    "getImport": lambda ids: Call(path={"import_id": ids.uploaded}),
    "pauseImport": lambda ids: Call(path={"import_id": ids.uploaded}),
    "resumeImport": lambda ids: Call(path={"import_id": ids.uploaded}),
    "undoImport": lambda ids: Call(path={"import_id": ids.uploaded}),
    "listFiles": lambda ids: Call(query={"user_id": ids.user_id, "path": "/memories"}),
    "readFile": lambda ids: Call(query={"user_id": ids.user_id, "path": FILE}),
    "writeFile": lambda ids: Call(body={"user_id": ids.user_id, "path": FILE, "content": "taken over"}),
    "editFile": lambda ids: Call(
        body={"user_id": ids.user_id, "path": FILE, "old_string": SECRET, "new_string": "taken over"}
    ),
    "globFiles": lambda ids: Call(body={"user_id": ids.user_id, "pattern": "*.md"}),
    "grepFiles": lambda ids: Call(body={"user_id": ids.user_id, "pattern": SECRET}),
    "uploadFiles": lambda ids: Call(body={"user_id": ids.user_id, "files": [{"path": FILE, "content": "taken over"}]}),
    "downloadFiles": lambda ids: Call(body={"user_id": ids.user_id, "paths": [FILE]}),
    "deleteFile": lambda ids: Call(query={"user_id": ids.user_id, "path": FILE}),
    "listFileHistory": lambda ids: Call(query={"user_id": ids.user_id, "path": FILE}),
    "listDiary": lambda ids: Call(query={"user_id": ids.user_id, "q": SECRET}),
    "writeDiaryEntry": lambda ids: Call(body={"user_id": ids.user_id, "content": "taken over"}),
    "deleteDiaryEntry": lambda ids: Call(path={"entry_id": ids.entry}),
    "listAttachments": lambda ids: Call(query={"user_id": ids.user_id}),
    "getAttachment": lambda ids: Call(path={"attachment_id": ids.attachment}),
    "listPassages": lambda ids: Call(path={"attachment_id": ids.attachment}),
    "deleteAttachment": lambda ids: Call(path={"attachment_id": ids.attachment}),
    "restoreFile": lambda ids: Call(body={"user_id": ids.user_id, "path": FILE, "version": 1}),
    "listGroups": lambda ids: Call(query={"user_id": ids.user_id}),
    "addGroup": lambda ids: Call(body={"name": "taken over"}),
    "getGroup": lambda ids: Call(path={"group_id": ids.group}),
    "changeGroup": lambda ids: Call(path={"group_id": ids.group}, body={"name": "taken over"}),
    "deleteGroup": lambda ids: Call(path={"group_id": ids.group}),
    "listGroupMembers": lambda ids: Call(path={"group_id": ids.group}),
    "setGroupMember": lambda ids: Call(path={"group_id": ids.group}, body={"user_id": ids.user_id}),
    "removeGroupMember": lambda ids: Call(path={"group_id": ids.group}, query={"user_id": ids.user_id}),
    "listGroupFacts": lambda ids: Call(path={"group_id": ids.group}),
    "addGroupFact": lambda ids: Call(path={"group_id": ids.group}, body={"user_id": ids.user_id, "content": SECRET}),
    "deleteGroupFact": lambda ids: Call(
        path={"group_id": ids.group, "fact_id": ids.group_fact}, query={"user_id": ids.user_id}
    ),
    "listUsers": lambda ids: Call(query={"q": ids.user_id}),
    "getUser": lambda ids: Call(query={"user_id": ids.user_id}),
    "changeUser": lambda ids: Call(query={"user_id": ids.user_id}, body={"display_name": "taken over"}),
    "listAgents": lambda ids: Call(query={"agent_id": ids.agent_name}),
    "getAgent": lambda ids: Call(path={"agent_id": ids.agent}),
    "changeAgent": lambda ids: Call(path={"agent_id": ids.agent}, body={"guidance": "taken over"}),
    "getContentPolicy": lambda _: Call(),
    "putContentPolicy": lambda _: Call(body={"categories": []}),
    "listContentPolicyVersions": lambda _: Call(),
    "restoreContentPolicy": lambda _: Call(body={"version": 1}),
    "listContentPolicyTopics": lambda _: Call(),
    "listContentPolicyDrops": lambda _: Call(),
    "startPolicyDryRun": lambda _: Call(body={}),
    "getPolicyDryRun": lambda ids: Call(path={"trial_id": ids.trial}),
    "listPolicyDryRunFindings": lambda ids: Call(path={"trial_id": ids.trial}),
    "deletePolicyDryRunFindings": lambda ids: Call(path={"trial_id": ids.trial}),
    "personLink": lambda ids: Call(body={"user_id": ids.user_id}),
    "createPrivacyRequest": lambda ids: Call(body={"user_id": ids.user_id, "type": "access"}),
    "getPrivacyRequest": lambda ids: Call(path={"case_id": ids.case}),
    "listExtractions": lambda ids: Call(query={"user_id": ids.user_id}),
    "getExtraction": lambda ids: Call(path={"run_id": ids.run}),
    "previewExtraction": lambda ids: Call(body={"user_id": ids.user_id, "session_id": ids.session_id, "ask": False}),
    "retryExtraction": lambda ids: Call(path={"run_id": ids.run}),
    "addTriple": lambda ids: Call(body={**_relation(ids), "object": SECRET}),
    "invalidateTriple": lambda ids: Call(body={**_relation(ids), "object": "Acme"}),
    "supersedeTriple": lambda ids: Call(body={**_relation(ids), "old_object": "Acme", "new_object": SECRET}),
    "listEntityTriples": lambda ids: Call(query={"user_id": ids.user_id, "name": "user"}),
    "listRelationTriples": lambda ids: Call(query={"user_id": ids.user_id, "predicate": "works_at"}),
    "listGraphTimeline": lambda ids: Call(query={"user_id": ids.user_id, "entity": "Acme"}),
    "getGraphStats": lambda ids: Call(query={"user_id": ids.user_id}),
    "getStoreItem": lambda ids: Call(query={"namespace": f"memories.{ids.user_id}", "key": "k"}),
    "putStoreItem": lambda ids: Call(body={"namespace": ["memories", ids.user_id], "key": "k", "value": {"a": "b"}}),
    "deleteStoreItem": lambda ids: Call(query={"namespace": f"memories.{ids.user_id}", "key": "k"}),
    "searchStoreItems": lambda ids: Call(body={"namespace_prefix": ["memories", ids.user_id], "query": SECRET}),
    "listStoreNamespaces": lambda ids: Call(body={"prefix": ["memories", ids.user_id]}),
    "batchStore": lambda ids: Call(
        body={"operations": [{"op": "get", "namespace": ["memories", ids.user_id], "key": "k"}]}
    ),
    "takePrivacyExport": lambda ids: Call(path={"case_id": ids.case}),
}


def send(client: HubClient, operation: str, ids: Ids) -> Any:
    """Call the operation with these ids."""
    method, template = operations()[operation]
    call = CALLS[operation](ids)
    path = template.removeprefix(BASE).format(**call.path)
    return client.call(method, path, call.body, query=call.query)


def populated(tenant: Tenant) -> Ids:
    """A person of the tenant with something behind every kind of id."""
    Tenant.objects.filter(pk=tenant.pk).update(person_page=True)
    person = factories.end_user(tenant, external_id=f"somebody-{uuid.uuid4()}", display_name=SECRET)
    session = factories.session(person, [("user", SECRET), ("assistant", "…")], session_id="s-1")
    session.turns.filter(number=1).update(external_id="m-s-1")
    SessionQueue.objects.filter(session=session).update(parked_at=factories.NOW, due_at=None, failure="model_timeout")
    draft = FactDraft(content=SECRET, category="other")
    given: dict[str, Any] = {"actor": factories.COMMAND, "now": factories.NOW}
    fact = add_fact(end_user=person, draft=draft, **given).row
    define(tenant)
    of_field = FactDraft(content=f"{SECRET} 3", category="other", key="profile.travel.home_airport", value=SECRET)
    add_fact(end_user=person, draft=of_field, **given)
    # A key restores what a key has forgotten.
    by_key: dict[str, Any] = {"actor": Actor(kind=ActorKind.KEY), "now": factories.NOW}
    trashed = add_fact(end_user=person, draft=FactDraft(content=f"{SECRET} 2", category="other"), **by_key).row
    forget_fact(fact_id=trashed.pk, tenant=tenant, **by_key)
    # Before there is an episode, so that one is left to dream of.
    dream = factories.dream(person, SECRET)
    episode = factories.episode(session, SECRET)
    factories.profile_section(person, summary=SECRET)
    factories.memory_file(person, FILE, SECRET)
    run = factories.run(session, status="parked")
    case = factories.export_to_take(person).case
    turn = session.turns.get(number=1)
    agent = factories.agent(tenant, f"agent-{uuid.uuid4()}")
    factories.store_item(person, {"text": SECRET}, key="k")
    factories.triple(person, "user", "works_at", "Acme")
    ours = [str(row.pk) for row in (session, fact, trashed, episode, run, case, turn, dream, agent)]
    entry = factories.diary_entry(person, SECRET)
    group = factories.memory_group(person)
    shared = [str(row.pk) for row in (entry, group, factories.group_fact(group, person, content=SECRET))]
    uploaded = factories.uploaded(tenant, SECRET.encode())
    trial = factories.policy_finding(fact).trial
    # Of what nothing here speaks.
    put_policy(tenant=tenant, given=[{"name": "棋牌", "words": ["打麻将"]}], **given)
    factories.policy_drop(tenant)
    did = factories.trajectory(person, SECRET, external_id="t-1", agent_id="")
    # Others are given it, too: it says nothing of the person.
    skill = Skill.objects.filter(tenant=tenant).first() or factories.skill(person, name="a-procedure")
    file = factories.attachment(turn, SECRET, name=SECRET)
    last = [str(row.pk) for row in (uploaded, trial, did)]
    return Ids(person.external_id, "s-1", *[*ours, agent.agent_id, *shared, *last, skill.name, str(file.pk)])
