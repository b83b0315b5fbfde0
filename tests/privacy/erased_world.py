"""Somebody of whom every store holds something, what others remember beside them, and stand-ins for what an erasure
asks of its neighbours."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.backends.db import SessionStore
from django.db import connection
from django_q.brokers.orm import ORM
from django_q.models import Schedule, Task
from django_q.tasks import async_task

from memories import audit
from memories.curation.access.keys import Binding
from memories.embedding import vectors
from memories.models import (
    Batch,
    CaseState,
    ChangeSet,
    EndpointState,
    EndUser,
    Fact,
    FactRefusal,
    FactRelation,
    PrivacyCase,
    Session,
    Tenant,
    WebhookEndpoint,
)
from memories.privacy import erasing
from tests import factories
from tests.factories import NOW


@dataclass
class Findings:
    """What the verification would have found."""

    hits: dict[str, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {"hits": self.hits}


@dataclass
class Neighbours:
    """Stand-ins that note what they were asked, in order."""

    asked: list[str] = field(default_factory=list)
    digests: list[bytes] = field(default_factory=list)
    findings: Findings = field(default_factory=Findings)

    def append(self, case: PrivacyCase, digests: Sequence[bytes], *, now: datetime) -> None:
        self.asked.append("ledger")
        self.digests = list(digests)

    def collect(self, person: EndUser) -> bytes:
        self.asked.append("needles")
        return b"encrypted"

    def of_nobody(self, tenant_id: uuid.UUID) -> bytes:
        return b""

    def verify(self, case: PrivacyCase) -> Findings:
        assert case.state == CaseState.VERIFYING
        assert bytes(case.needles) == b"encrypted"
        self.asked.append("verify")
        return self.findings

    def issue(self, case: PrivacyCase, *, now: datetime) -> None:
        assert connection.in_atomic_block
        self.asked.append("receipt")
        case.receipt, case.signature = {"case": str(case.pk), "told": case.told}, "signed"

    def write_files(self, case: PrivacyCase) -> None:
        self.asked.append("files")


def stand_in(monkeypatch: pytest.MonkeyPatch) -> Neighbours:
    """Take the neighbours' places for one test."""
    neighbours = Neighbours()
    for name in ("ledger", "search_terms", "verification", "receipts"):
        monkeypatch.setattr(erasing, name, neighbours)
    return neighbours


def somebody(owner: Tenant, name: str) -> EndUser:
    """A person of whom every store holds something; they are called `name`, and `name`-old besides."""
    person = factories.end_user(owner, external_id=name, display_name=f"Display {name}", metadata={"of": name})
    _talked(person, name)
    _decided(person, name)
    _merged(person, name)
    _asked(person)
    _elsewhere(person)
    while vectors.embed_some().moved:
        """Until every text has its vector."""
    return person


def _talked(person: EndUser, name: str) -> None:
    conversation = factories.session(
        person, (("user", f"I am {name}"), ("assistant", "Noted")), session_id=f"s-{name}", agent_id=f"agent-{name}"
    )
    factories.run(conversation)
    said = conversation.turns.get(number=1)
    factories.attachment(said, f"A lease of {name}", name=f"{name}.pdf")
    factories.attachment(said, name=f"{name}-waits.md", content=f"# {name}".encode())
    fact = known(person, f"Bakes bread with {name}")
    factories.evidence(fact, conversation.turns.get(number=1), quote=f"I am {name}")
    factories.episode(conversation, f"Talked of {name}")
    factories.profile_section(person, summary=f"{name} runs a bakery")
    factories.memory_file(person, f"/memories/{name}.md", f"{name} sails")
    factories.diary_entry(person, f"{name} asked twice", agent_id=f"agent-{name}", topic=f"about {name}")
    names = {"session_id": f"s-{name}", "external_id": f"t-{name}", "agent_id": f"agent-{name}"}
    factories.trajectory(person, f"{name} wants a sailing plan", outcome_reason=f"{name} liked it", **names)
    hook = WebhookEndpoint.objects.filter(tenant=person.tenant).first() or factories.webhook(person.tenant)
    factories.webhook_delivery(hook, person)
    group = factories.memory_group(person, name=f"Friends of {name}")
    factories.group_fact(group, person, content=f"{name} skates", about=person)
    factories.dream(person, f"{name} dives", agent_id=f"agent-{name}")
    factories.skill(person, text=f"{name} folds the dough")


def known(person: EndUser, content: str, **over: Any) -> Fact:
    fact = factories.fact(person, content, **over)
    audit.revise(fact=fact, verb="extract", actor=factories.COMMAND, before={}, reason="", now=NOW)
    return fact


def told_to_another(person: EndUser) -> None:
    """Somebody else's logged context has a fact of the person, and so has a block that was sent for them."""
    other = factories.end_user(person.tenant)
    factories.logged_context(other, [person.facts.first()])
    factories.sent_block(other, [person.facts.first()])


def _decided(person: EndUser, name: str) -> None:
    fact = person.facts.get()
    older = known(person, f"Baked cake with {name}", status="superseded", superseded_by=fact)
    FactRelation.objects.create(tenant_id=fact.tenant_id, fact=fact, target=older, type="related_to", created_at=NOW)
    FactRefusal.objects.create(
        tenant_id=person.tenant_id, end_user=person, kind="text", digest=uuid.uuid4().bytes, fact=fact, created_at=NOW
    )
    factories.profile_revision(person)
    item = factories.review_item(fact, known=older, note=f"About {name}")
    factories.review_note(item, f"Asked {name}")
    batch = Batch.objects.create(verb="approve", created_at=NOW)
    made = {"tenant": person.tenant, "verb": "approve", "reason": f"About {name}", "created_at": NOW}
    for about in ({"item": item}, {"fact": fact}, {"end_user": person}):
        done = ChangeSet.objects.create(**made, **about, batch=batch)
        done.changes.create(tenant_id=done.tenant_id, table="refusal", action="deleted", before={"fact": str(fact.pk)})


def _merged(person: EndUser, name: str) -> None:
    other = factories.end_user(person.tenant, external_id=f"{name}-old", merged_into=person)
    merge = ChangeSet.objects.create(
        tenant=person.tenant, end_user=person, merged=other, verb="merge", reason=f"About {name}", created_at=NOW
    )
    merge.changes.create(tenant_id=merge.tenant_id, table="fact", action="moved", uuid=person.facts.first().pk)  # type: ignore[union-attr]


def _asked(person: EndUser) -> None:
    factories.idempotency_record(person, key_digest=digest_of(person), body=b"{}", status=202)
    factories.store_item(person, {"text": "Bakes rye bread on Sundays."})
    factories.triple(person, "Aunt Wilhelmina", "lives_in", "Zoetermeer")
    factories.logged_context(person, [person.facts.first()], query="Who bakes?", memory="<memory>Bakes</memory>")
    factories.sent_block(person, [person.facts.first()])
    factories.seen_text(person)
    factories.imported_row(person)
    factories.policy_finding(person.facts.all()[0])
    factories.person_link(person)
    factories.uploaded(
        person.tenant, f"{person.external_id} bakes rye".encode(), options={"user_id": person.external_id}
    )
    case = factories.privacy_case(person, type="access", reference=f"about {person.external_id}", outcome="A text")
    factories.privacy_export(case)
    factories.api_key(person.tenant, binding=Binding(person.external_id))


def _elsewhere(person: EndUser) -> None:
    session = Session.objects.filter(end_user=person).get()
    async_task("memories.tasks.consolidate_session", str(session.pk), broker=ORM())
    given = {"func": "f", "started": NOW, "stopped": NOW, "success": False}
    Task.objects.create(id=uuid.uuid4().hex, name="t", args=(str(session.pk),), result="killed", **given)
    Schedule.objects.create(name="once", func="f", args=f"'{session.pk}'")
    seen = SessionStore()
    seen["back_to"] = f"/admin/memories/enduser/{person.pk}/"
    seen.save()
    LogEntry.objects.create(
        user=factories.operator(),
        content_type=ContentType.objects.get_for_model(Fact),
        object_id=str(person.facts.first().pk),  # type: ignore[union-attr]
        object_repr="Fact",
        action_flag=2,
        change_message="",
    )
    AccessAttempt.objects.create(
        username=str(person.pk), user_agent="x", ip_address="192.0.2.1", failures_since_start=1
    )
    EndpointState.objects.update_or_create(tenant=None, defaults={"last_session": session.pk})
    factories.decay_pass(person.tenant, reached=person.pk)


def digest_of(person: EndUser) -> bytes:
    """Of the key that a kept answer of theirs was asked under."""
    return sha256(person.pk.bytes).digest()


def erasure(person: EndUser, **over: Any) -> PrivacyCase:
    """An approved case."""
    return factories.privacy_case(person, **{"state": CaseState.APPROVED, **over})


def rows_beside() -> dict[str, list[Any]]:
    """Every row of every table but those that tell of an erasure itself, as the database writes them."""
    left_out = {"memories_auditevent", "memories_privacycase", "memories_tombstone", "django_q_ormq"}
    tables = sorted({model._meta.db_table for model in apps.get_models(include_auto_created=True)} - left_out)
    with connection.cursor() as cursor:
        found = {}
        for table in tables:
            cursor.execute(f"SELECT row::text FROM {table} row ORDER BY 1")
            found[table] = [row for (row,) in cursor.fetchall()]
    return found
