"""A person each of whose fields holds a marker of its own, made the way people do: by the API, by a model, by staff."""

import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.backends.db import SessionStore
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django_q.models import Task
from django_q.tasks import async_task

from memories.audit import Actor
from memories.curation.access.keys import Binding
from memories.curation.facts.merging import merge_facts
from memories.curation.facts.publishing import publish_fact
from memories.curation.people.merging.merge import merge_people
from memories.curation.review.decisions import reject_item
from memories.embedding import vectors
from memories.extraction import consolidation
from memories.models import (
    EndpointState,
    EndUser,
    Fact,
    PrivacyCase,
    ReviewItem,
    Session,
    SessionQueue,
    Tenant,
    TurnVector,
    WorkingMemory,
)
from memories.privacy import cases, running
from tests import factories
from tests.admin.conftest import signed_in
from tests.api.client import HubClient
from tests.factories import COMMAND
from tests.model import Model, candidate

_DIGITS = "〇一二三四五六七八九"


class Canary:
    """The tenant with the person in it; `marks` says what each marker stands for, `unkept` those that nobody stores."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.marks: dict[str, str] = {}
        self.unkept: dict[str, str] = {}
        self.tenant: Tenant = factories.tenant()
        _key, plaintext = factories.api_key(self.tenant)
        self.client = HubClient(plaintext)
        self.operator = factories.operator()
        self.staff = Actor.operator(self.operator)
        self.admin: Client = signed_in(self.operator)
        self.user_id = self.mark("EndUser.external_id")
        self.keys: dict[str, dict[str, Any]] = {}

    def mark(self, what: str) -> str:
        """A new marker, English and Chinese in one."""
        mark = _mark(len(self.marks) + len(self.unkept))
        self.marks[mark] = what
        return mark

    def unkept_mark(self, what: str) -> str:
        mark = _mark(len(self.marks) + len(self.unkept))
        self.unkept[mark] = what
        return mark

    @property
    def person(self) -> EndUser:
        return EndUser.objects.called(self.tenant, self.user_id).get()

    def build(self) -> None:
        for part in (
            self.record, self.talk, self.extracted, self.stated, self.reviewed, self.merged_facts, self.profile,
            self.episodes, self.names, self.runs, self.embedded, self.queues, self.staffs_traces, self.asked,
            self.friend, self.cases, self.keys_for_them,
        ):  # fmt: skip
            part()

    def post(self, path: str, body: dict[str, Any], status: Sequence[int] = (200, 201, 202)) -> Any:
        """With an idempotency key that is kept, to be sent again."""
        key = self.unkept_mark(f"the idempotency key of {path}").encode().hex()
        self.keys[key] = {"path": path, "body": body}
        response = self.client.post(path, body, **{"Idempotency-Key": key})
        assert response.status_code in status, response.content
        return response.json()

    def message(self, role: str, **more: Any) -> dict[str, Any]:
        return {"role": role, "content": self.mark(f"content of a {role} turn"), **more}

    def turns(self, session_id: str, messages: list[dict[str, Any]], agent_id: str = "") -> Session:
        body = {"user_id": self.user_id, "session_id": session_id, "messages": messages}
        self.post("/turns", body | ({"agent_id": agent_id} if agent_id else {}))
        return Session.objects.get(external_id=session_id)

    def talk(self) -> None:
        """Turns with all that a message can carry."""
        call = {
            "id": self.mark("id of a call"),
            "type": "function",
            "function": {"name": "look_up", "arguments": '{"q": "' + self.mark("arguments of a call") + '"}'},
        }
        parts = [{"type": "text", "text": self.mark("a part")}, {"type": "text", "text": self.mark("another part")}]
        metadata = {self.mark("key of metadata"): [{"deep": self.mark("value of metadata")}]}
        messages = [
            self.message("system"),
            self.message("user", name=self.mark("Turn.name"), external_id=self.mark("Turn.external_id")),
            {"role": "user", "content": parts, "metadata": metadata},
            {"role": "assistant", "content": self.mark("content beside calls"), "tool_calls": [call]},
            self.message("tool", tool_call_id=call["id"]),
            self.message("assistant"),
        ]
        self.session = self.turns(self.mark("Session.external_id"), messages, self.mark("Session.agent_id"))
        said = self.session.turns.get(number=2)
        factories.attachment(said, self.mark("Passage.content"), name=self.mark("Attachment.name"))
        factories.attachment(said, content=self.mark("a file that waits").encode())
        WorkingMemory.objects.filter(pk=self.session.pk).update(summary=self.mark("WorkingMemory.summary"))

    def keys_for_them(self) -> None:
        """API keys for the person alone."""
        factories.api_key(self.tenant, binding=Binding(self.user_id))

    def record(self) -> None:
        factories.end_user(self.tenant, external_id=self.user_id)
        metadata = {self.mark("key of the record"): self.mark("value of the record")}
        body = {"display_name": self.mark("EndUser.display_name"), "metadata": metadata}
        response = self.client.call("PATCH", "/users/detail", body, query={"user_id": self.user_id})
        assert response.status_code == 200, response.content

    def extracted(self) -> None:
        """Facts of all fields, in words that the person says: others' would not be kept, or would wait."""
        fields = ("content", "key", "value", "tag", "what was wrong", "profile")
        content, key, value, tag, wrong, profile = marks = [self.mark(f"{field} by a model") for field in fields]
        said = self.message("user")
        said["content"] = " ".join([said["content"], *marks])
        session = self.turns(self.mark("session of an extraction"), [said, self.message("assistant")])
        self.model.say(
            candidate(content, key=key[:100], value=value, tags=[tag], source_error=wrong, category="correction"),
            profile={"work_context": {"summary": profile, "should_update": True}},
        )
        SessionQueue.objects.filter(pk=session.pk).update(due_at=timezone.now() - timedelta(hours=1))
        run = consolidation.consolidate(session_id=session.pk, now=timezone.now())
        assert run
        assert run.status == "committed", run.failure

    def stated(self) -> None:
        """Facts that the application stated, changed and deleted, and one that staff made public."""
        made = self.post("/facts", self.fact("stated"))
        fact_id = made["id"]
        changed = self.client.call("PATCH", f"/facts/{fact_id}", {"content": self.mark("a new content")})
        assert changed.status_code == 200, changed.content
        gone = self.post("/facts", self.fact("deleted"))
        assert self.client.call("DELETE", f"/facts/{gone['id']}").status_code == 204
        public = self.post("/facts", self.fact("public"))
        reason = self.mark("why it was made public")
        pk = uuid.UUID(public["id"])
        publish_fact(fact_id=pk, actor=self.staff, now=timezone.now(), reason=reason)
        older = factories.fact(self.person, self.mark("a superseded fact"), status="superseded", raw=self.mark("raw"))
        Fact.objects.filter(pk=older.pk).update(superseded_by=fact_id, structured={"a": self.mark("structured")})
        said = {"subject": self.mark("subject of a fact's triple"), "predicate": "knows", "object": "Rows"}
        Fact.objects.filter(pk=older.pk).update(triples=[{**said, "valid_from": None, "valid_to": None}])
        document = {
            "user": {"workContext": {"summary": "Rows", "updatedAt": self.mark("updatedAt of a document")}},
            "facts": [{"id": self.mark("id in a document"), "content": "Rows", "topic": self.mark("topic")}],
        }
        taken = self.client.call("PUT", "/memory", document, query={"user_id": self.user_id})
        assert taken.status_code == 200, taken.content

    def fact(self, kind: str) -> dict[str, Any]:
        return {
            "user_id": self.user_id,
            "content": self.mark(f"content of a {kind} fact"),
            "category": "knowledge",
            "key": self.mark(f"key of a {kind} fact"),
            "value": self.mark(f"value of a {kind} fact"),
            "tags": [self.mark(f"tag of a {kind} fact")],
        }

    def reviewed(self) -> None:
        waits = factories.fact(self.person, self.mark("a suggestion"), status="pending")
        item = factories.review_item(waits)
        note = self.mark("why it was rejected")
        reject_item(item_id=item.pk, actor=self.staff, now=timezone.now(), reason=note)
        open_one = factories.review_item(factories.fact(self.person, self.mark("an open question"), status="pending"))
        ReviewItem.objects.filter(pk=open_one.pk).update(note=self.mark("ReviewItem.note"))
        factories.review_note(open_one, self.mark("ReviewNote.text"))

    def merged_facts(self) -> None:
        one, two = (factories.fact(self.person, self.mark("a fact to merge")) for _ in range(2))
        self.session.refresh_from_db()
        turn = self.session.turns.first()
        assert turn
        factories.evidence(one, turn, self.mark("FactEvidence.quote"))
        merge_facts(
            survivor=one.pk,
            expected={one.pk: one.version, two.pk: two.version},
            content=self.mark("what the survivor says"),
            actor=self.staff,
            now=timezone.now(),
            reason=self.mark("why they were merged"),
        )

    def profile(self) -> None:
        for number in range(2):
            body = {"user_id": self.user_id, "summary": self.mark(f"profile, version {number}")}
            assert self.client.call("PUT", "/profile/top_of_mind", body).status_code == 200
        factories.profile_revision(self.person, self.mark("a proposed section"), version=None)

    def episodes(self) -> None:
        topics = {name: [self.mark(f"Episode.{name}")] for name in ("key_topics", "actions_taken", "outcomes")}
        factories.episode(self.session, self.mark("Episode.summary"), **topics)
        factories.poor_episode(
            self.turns(self.mark("another session"), [self.message("user")]), self.mark("a poor one")
        )

    def names(self) -> None:
        """Somebody whom staff found to be the same person, with all they said."""
        other = factories.end_user(self.tenant, external_id=self.mark("the id of who was merged"))
        said = [("user", self.mark("what the merged one said"))]
        factories.session(other, said, session_id=self.mark("a session of who was merged"))
        factories.fact(other, self.mark("a fact of who was merged"))
        merge_people(survivor=self.person.pk, merged=other.pk, actor=self.staff, now=timezone.now())

    def runs(self) -> None:
        """An attempt that failed with the model's own words, and one that was parked."""
        session = self.turns(self.mark("session of a failure"), [self.message("user"), self.message("assistant")])
        SessionQueue.objects.filter(pk=session.pk).update(due_at=timezone.now() - timedelta(hours=1))
        self.model.answers.append(ValueError(self.unkept_mark("what an exception said")))
        try:
            consolidation.consolidate(session_id=session.pk, now=timezone.now())
        except ValueError:
            """As its task would note it: by place and kind."""
        factories.run(session, status="parked", failure="model_refused")
        EndpointState.objects.update_or_create(defaults={"last_session": session.pk})

    def embedded(self) -> None:
        embed_all()
        with connection.cursor() as cursor:
            pk = TurnVector.objects.filter(end_user=self.person).values_list("pk", flat=True)[0]
            numbers = ",".join(str(place % 7 - 3.5) for place in range(_dimensions()))
            cursor.execute(
                "UPDATE memories_turnvector SET vector = %s::text::halfvec WHERE id = %s", [f"[{numbers}]", pk]
            )
        self.marks[numbers[:80]] = "a vector"

    def queues(self) -> None:
        """Wake-ups, one that failed with a trace, and one of a person's id; its group says what the others cannot."""
        async_task("memories.tasks.consolidate_session", str(self.session.pk))
        async_task("memories.tasks.replan_decay", str(self.tenant.pk), str(self.person.pk))
        times = {"started": timezone.now(), "stopped": timezone.now(), "success": False}
        said = f"{self.mark('Task.result')} of {self.user_id}"
        Task.objects.create(id="t1", name="one", func="f", args=(self.session.pk,), result=said, **times)
        self.marks |= {str(self.person.pk): "EndUser.id", str(self.session.pk): "Session.id"}

    def staffs_traces(self) -> None:
        """What an operator's browser and Django's own log keep."""
        browser = SessionStore()
        browser["back"] = reverse("admin:memories_enduser_change", args=[self.person.pk])
        browser["_messages"] = f"{self.user_id}: {self.mark('a message to staff')}"
        browser.save()
        LogEntry.objects.create(
            user=self.operator,
            content_type=ContentType.objects.get_for_model(EndUser),
            object_id=str(self.person.pk),
            object_repr=self.mark("LogEntry.object_repr"),
            action_flag=CHANGE,
            change_message=self.mark("LogEntry.change_message"),
        )

    def asked(self) -> None:
        """Questions are kept nowhere."""
        query = self.unkept_mark("what was searched for")
        assert self.client.post("/search", {"user_id": self.user_id, "query": query}).status_code == 200
        query = self.unkept_mark("what a context was asked for")
        assert self.client.post("/context", {"user_id": self.user_id, "query": query}).status_code == 200
        given = {"tenant": self.tenant.pk, "user_id": self.user_id, "agent": "", "max_tokens": 500}
        query = self.unkept_mark("what staff asked in the playground")
        assert self.admin.post(reverse("admin:recalled"), {**given, "query": query}).status_code == 200

    def friend(self) -> None:
        """Another person's memory that is for this one; what it says stays."""
        friend = factories.end_user(self.tenant)
        fact = factories.fact(friend, "Plays chess on Sundays", scope="limited", allowed_users=[self.user_id, "x"])
        after = {"content": "Plays chess on Sundays", "allowed_users": [self.user_id, "x"]}
        fact.revisions.create(
            tenant_id=fact.tenant_id, version=1, verb="add", actor_kind="api", created_at=timezone.now(), after=after
        )
        self.for_person = fact

    def reference(self, what: str) -> str:
        """One that names the person goes with them; the number of a ticket stays."""
        return f"{self.mark(what)}: {self.user_id}"

    def cases(self) -> None:
        """An access case whose export is made."""
        given: dict[str, Any] = {"actor": COMMAND, "now": timezone.now()}
        texts: dict[str, Any] = {
            "channel": self.mark("PrivacyCase.channel"),
            "reference": self.reference("PrivacyCase.reference"),
        }
        case = cases.open_case(tenant=self.tenant, user_id=self.user_id, type="access", **texts, **given)
        cases.verify_identity(case_id=case.pk, expected_version=None, how="call_back", **given)
        cases.run_case(case_id=case.pk, expected_version=None, **given)
        done = running.carry_out(case_id=case.pk, now=timezone.now())
        assert done.exports.get().pieces.exists()
        told = self.mark("PrivacyCase.told")
        PrivacyCase.objects.filter(pk=case.pk).update(told=told, hold_reason=self.mark("PrivacyCase.hold_reason"))


def embed_all() -> None:
    while vectors.embed_some().moved:
        """Until every text has its vector."""


def _mark(number: int) -> str:
    return f"kea{number:03}wing翠鸟" + "".join(_DIGITS[int(digit)] for digit in f"{number:03}") + "号"


def _dimensions() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT vector_dims(vector) FROM memories_turnvector LIMIT 1")
        return int(cursor.fetchall()[0][0])
