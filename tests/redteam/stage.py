"""The stage: cases are played against the real hub, through REST and the pipeline, with a model that obeys.

Everything happens in the caller's transaction, a person for each case.
"""

import io
import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from unittest import mock
from urllib.parse import urlencode

from django.core.management import CommandError, call_command
from django.db import transaction
from django.db.models.functions import Now
from django.test import Client, override_settings
from django.utils import timezone

from memories.audit import Actor
from memories.context import recalled_turns
from memories.context.parts import INCLUDABLE
from memories.curation.facts.publishing import publish_fact
from memories.curation.statements.write_trust import WriteTrust
from memories.episodes import compaction
from memories.exceptions import Conflict
from memories.extraction import consolidation
from memories.llm import client
from memories.llm.answers import A, parse
from memories.llm.calls import Call, Completion
from memories.models import ActorKind, Fact, Role, Session, SessionQueue, Tenant, Trust, Turn, WorkingMemory
from memories.reconcile import gate
from memories.text import uploads
from memories.text.injection import detection, flagged_turns
from memories.text.support import SourceTexts
from tests import factories, summaries
from tests.redteam import judge
from tests.redteam.corpus import Case
from tests.redteam.judge import Seen, Told

OTHER = "bystander"
SCOPES = "ingest,read,write"
# Fields that a hub before issue 8 does not know: without them the call is what it then was.
LATER = frozenset({"stated_by", "source", "evidence", "relations", "valid_from", "raw"})
MOST_TOKENS = 8_000
# So long that a run away of a session would be seen.
MOST_ATTEMPTS = 10


@dataclass(frozen=True)
class Outcome:
    """What came of a case: how the attempt succeeded, whether the benign text was held; what the hub does not have."""

    case: Case
    successes: frozenset[str] = frozenset()
    is_held: bool = False
    absent: frozenset[str] = frozenset()

    @property
    def is_bad(self) -> bool:
        return bool(self.successes) or self.is_held


@dataclass
class Stage:
    """Two tenants (cases about summaries have one whose windows are short), another one, and keys of each kind."""

    tenant: Tenant
    short: Tenant
    stranger: Tenant
    keys: dict[tuple[str, ...], str] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)
    playing: Case | None = None
    http: Client = field(default_factory=Client)

    def play(self, case: Case) -> Outcome:
        """Post, extract, call, ask; judge by what is told."""
        self.playing, self.absent = case, set()
        tenant = self.short if case.way == "summary" else self.tenant
        posted = self._post(case, tenant) if case.turns else {}
        before = Told()
        if posted:
            if case.is_attempt:
                before = self._told(tenant, case, include=["unextracted"])
            session_id = uuid.UUID(posted["session"]["id"])
            consolidation.consolidate(session_id=session_id, now=timezone.now())
            if case.way == "summary":
                _compact(session_id)
        self._call_all(case, tenant, posted)
        if case.publish:
            self._publish(case, tenant)
        if case.is_attempt:
            seen = Seen(me=self._told(tenant, case), others=self._others(tenant, case), before=before)
            return Outcome(case, frozenset(judge.successes(case, seen)), absent=frozenset(self.absent))
        # Whether it is served counts alone: only those are asked whom it is meant for.
        for_other = case.tells == "other"
        told = self._told(tenant, case, user_id=OTHER if for_other else "")
        is_held = judge.is_held(case, Seen(told, [told] if for_other else ()))
        return Outcome(case, is_held=is_held, absent=frozenset(self.absent))

    def answer(self, name: str, said: str) -> dict[str, Any]:
        """What the most obedient model says."""
        case = self.playing
        assert case
        if name == "memory_update":
            return {"new_facts": [_candidate(fact) for fact in case.facts], "profile": _profile(case.profile)}
        told = {"episode_summary": case.episode, "session_summary": case.running}.get(name)
        answer = summaries.of(name, said)
        if answer is None:
            return {"judgements": []}
        return {**answer, "summary": told} if told else answer

    def _post(self, case: Case, tenant: Tenant) -> dict[str, Any]:
        messages = [{"role": role, "content": text, **dict(*rest)} for role, text, *rest in case.turns]
        body = {"user_id": case.id, "session_id": case.id, "messages": messages, "flush": True}
        status, answer = self._call(tenant, "user", "POST", "/turns", body)
        assert status == 202, (case.id, answer)
        return answer

    def _call_all(self, case: Case, tenant: Tenant, posted: dict[str, Any]) -> None:
        turns = {f"turn{turn['number']}": turn["id"] for turn in posted.get("turns", [])}
        for call in case.calls:
            names = {"me": case.id, "other": OTHER, **turns}
            if "{fact}" in str(call):
                names["fact"] = self._newest(case, tenant)
            method, path = _filled(call["do"], names).split(" ", 1)
            body = _filled({"user_id": "{me}", **call["body"]} if method != "PATCH" else call["body"], names)
            status, answer = self._call(tenant, call["as"], method, path, body, person=case.id)
            assert status < 500, (case.id, answer)

    def _newest(self, case: Case, tenant: Tenant) -> str:
        """The id of the person's newest fact; of nobody's when there is none."""
        facts = self._listed(tenant, case.id, status="all")
        return str(facts[0]["id"]) if facts else "00000000-0000-4000-8000-000000000000"

    def _publish(self, case: Case, tenant: Tenant) -> None:
        for fact in Fact.objects.filter(tenant=tenant, end_user__external_id=case.id, status="active"):
            try:
                publish_fact(fact_id=fact.pk, actor=Actor(kind=ActorKind.COMMAND), now=timezone.now())
            except Conflict:
                continue

    def _told(self, tenant: Tenant, case: Case, *, user_id: str = "", include: Sequence[str] = INCLUDABLE) -> Told:
        """What a later conversation is told, and beside which system messages the same one goes on."""
        person = user_id or case.id
        memory = self._context(tenant, case, person, include)["memory"]
        beside: list[str] = []
        if case.way == "summary" and "working_memory" in include:
            answer = self._context(tenant, case, person, include, session_id=case.id)
            system = [message["content"] for message in answer["messages"] if message["role"] == "system"]
            beside = [text for text in system if text != answer["memory"]]
        is_asked = case.is_attempt and person == case.id and "facts" in include
        listed = self._listed(tenant, person, trust="user") if is_asked else []
        return Told(memory, beside, [fact["content"] for fact in listed])

    def _context(self, tenant: Tenant, case: Case, person: str, include: Sequence[str], **named: str) -> dict[str, Any]:
        body = {"user_id": person, "query": case.query, "max_tokens": MOST_TOKENS, "include": list(include), **named}
        status, answer = self._call(tenant, "user", "POST", "/context", body)
        assert status == 200, (case.id, answer)
        return answer

    def _listed(self, tenant: Tenant, user_id: str, *, status: str = "active", trust: str = "") -> list[dict[str, Any]]:
        query = urlencode({"user_id": user_id, "status": status, "page_size": 200})
        code, answer = self._call(tenant, "user", "GET", f"/facts?{query}")
        assert code == 200, answer
        return [fact for fact in answer["results"] if trust in ("", fact["trust"])]

    def _others(self, tenant: Tenant, case: Case) -> list[Told]:
        """Somebody else of the tenant, and whoever has the person's name at another tenant."""
        beside = Told(self._context(self.stranger, case, case.id, INCLUDABLE)["memory"])
        return [self._told(tenant, case, user_id=OTHER), beside]

    def _call(
        self, tenant: Tenant, key: str, method: str, path: str, body: Any = None, *, person: str = ""
    ) -> tuple[int, dict[str, Any]]:
        secret = self._key(tenant, key, person)
        status, answer = self._request(secret, method, path, body)
        unknown = {
            error["pointer"].strip("/") for error in answer.get("errors", []) if error["code"] == "unknown_field"
        }
        if status == 400 and unknown and unknown <= LATER:
            self.absent |= unknown
            known = {name: value for name, value in body.items() if name not in unknown}
            return self._request(secret, method, path, known)
        return status, answer

    def _request(self, secret: str, method: str, path: str, body: Any) -> tuple[int, dict[str, Any]]:
        headers = {"Authorization": f"Bearer {secret}"}
        data = b"" if body is None else json.dumps(body).encode()
        answer = self.http.generic(method, f"/api/v1{path}", data, content_type="application/json", headers=headers)
        return answer.status_code, answer.json() if answer.content else {}

    def _key(self, tenant: Tenant, kind: str, person: str) -> str:
        """A key of that kind; a plain one, and noted, where the hub does not have the kind."""
        kinds: dict[str, tuple[str, ...]] = {"agent": ("--writes-as", "agent"), "bound": ("--user", person)}
        options = kinds.get(kind, ())
        named = (tenant.slug, *options)
        if named not in self.keys:
            self.keys[named] = _made(tenant, options)
        if not self.keys[named]:
            self.absent.add(options[0])
        return self.keys[named] or self._key(tenant, "user", "")


@contextmanager
def opened() -> Iterator[Stage]:
    """A stage whose model is asked by the hub while it is open."""
    stage = Stage(
        tenant=factories.tenant(), short=factories.tenant(window_rounds=1, episode_turns=2), stranger=factories.tenant()
    )
    for tenant in (stage.tenant, stage.short, stage.stranger):
        factories.fact(factories.end_user(tenant, external_id=OTHER), "Has a garden with two apple trees")

    with ExitStack() as stack:
        stack.enter_context(override_settings(MEMORYHUB_LLM="scripted"))
        stack.enter_context(mock.patch.dict(client.BACKENDS, scripted=f"{__name__}.obey"))
        stack.enter_context(mock.patch(f"{__name__}.present", stage))
        yield stage


def played(cases: Iterable[Case]) -> list[Outcome]:
    """What came of the cases, on one stage; nothing of them stays."""
    with transaction.atomic(), opened() as stage:
        outcomes = [stage.play(case) for case in cases]
        transaction.set_rollback(True)
    return outcomes


def posted_otherwise(**whose: Any) -> dict[str, Any]:
    """The session as POST /turns answers with it, after its turns came in by another way; it is due."""
    session = Session.objects.get(**whose)
    SessionQueue.objects.filter(pk=session.pk).update(due_at=Now())
    turns = Turn.objects.filter(session=session).order_by("number").values_list("pk", "number")
    return {"session": {"id": str(session.pk)}, "turns": [{"id": str(pk), "number": number} for pk, number in turns]}


# The open stage.
present: Stage | None = None


def obey(call: Call[A]) -> Completion[A]:
    """The model that the hub asks while a stage is open: it answers what the case wants."""
    assert present
    call.before_call()
    answer = json.dumps(present.answer(call.answer.name, call.messages[-1]["content"]))
    return Completion(parse(answer, call.answer), "test", prompt_tokens=70, completion_tokens=7, calls=1)


@contextmanager
def disarmed() -> Iterator[None]:
    """The hub without its guards, to see that the measure sees what they hold: nothing speaks to a model, the person
    says whatever a model makes of a talk, every key writes the user's words, files and tools are told like turns."""
    with ExitStack() as stack:
        for owner, name, answer in _GUARDS:
            stack.enter_context(mock.patch.object(owner, name, answer))
        yield


def _as_user(write_trust: WriteTrust, *_: object, **__: object) -> None:
    object.__setattr__(write_trust, "trust", Trust.USER)
    object.__setattr__(write_trust, "imports", False)


def _always(answer: object) -> Callable[..., Any]:
    return lambda *_, **__: answer


def _as_it_is(text: str, *_: object) -> str:
    return text


# Each is asked through the object that is named here, wherever in the hub it is.
_GUARDS: tuple[tuple[Any, str, Any], ...] = (
    (detection, "flags", _always(())),
    (detection, "speaks_to_model", _always(False)),
    # Nobody asks, so no verdict of a hub without its guards is kept in this process.
    (flagged_turns, "is_flagged", _always(False)),
    (recalled_turns, "is_flagged", _always(False)),
    (SourceTexts, "trust_of", _always(Trust.USER)),
    (SourceTexts, "trust_of_summary", _always(Trust.USER)),
    (SourceTexts, "names_nothing_new", _always(True)),
    (SourceTexts, "has_all_of", _always(True)),
    (SourceTexts, "is_mere_assent", _always(False)),
    (SourceTexts, "lacks", _always(False)),
    (SourceTexts, "lacks_code", _always(False)),
    (gate, "trust_of", _always(Trust.USER)),
    (WriteTrust, "__init__", _as_user),
    (uploads, "cut_blocks", _as_it_is),
    (uploads, "mentioned", _always(False)),
    (recalled_turns, "RECALLED_ROLES", recalled_turns.RECALLED_ROLES | {Role.TOOL}),
)


def _compact(session_id: uuid.UUID) -> None:
    """As the workers do until nothing is due."""
    rows = WorkingMemory.objects.filter(pk=session_id)
    rows.update(due_at=Now() - timedelta(seconds=1))
    for _ in range(MOST_ATTEMPTS):
        if not WorkingMemory.objects.due().filter(pk=session_id).exists():
            return
        compaction.compact(session_id=session_id, now=timezone.now())


def _made(tenant: Tenant, options: Sequence[str]) -> str:
    """A new key as its command makes it; empty when the command does not know the options."""
    said = io.StringIO()
    try:
        call_command("create_api_key", "--tenant", tenant.slug, "--scopes", SCOPES, *options, stdout=said)
    except CommandError:
        return ""
    return said.getvalue().strip()


def _candidate(given: dict[str, Any]) -> dict[str, Any]:
    """A fact as a model gives it."""
    rest = {name: value for name, value in given.items() if name != "cites"}
    usual = {"category": "context", "confidence": 0.95, "importance": 0.8, "durability": "durable", "about": "user"}
    return {**usual, "evidence": given.get("cites", [1]), **rest}


def _profile(sections: dict[str, str]) -> dict[str, Any]:
    return {section: {"summary": text, "should_update": True} for section, text in sections.items()}


def _filled(given: Any, names: dict[str, str]) -> Any:
    """`given` with {name} replaced in all of its texts."""
    if isinstance(given, str):
        for name, value in names.items():
            given = given.replace(f"{{{name}}}", value)
        return given
    if isinstance(given, dict):
        return {name: _filled(value, names) for name, value in given.items()}
    return [_filled(one, names) for one in given] if isinstance(given, list) else given
