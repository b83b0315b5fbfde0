"""A person of whom every store holds something, and what is in an export of theirs."""

import io
import json
from typing import Any
from zipfile import ZipFile

from memories.audit import Actor, revise
from memories.embedding import vectors
from memories.models import (
    CaseState,
    CaseType,
    ChangeSet,
    EndUser,
    FactRefusal,
    FactRelation,
    Operator,
    PrivacyCase,
    PrivacyExport,
    SessionQueue,
    Tenant,
    WorkingMemory,
)
from memories.privacy import exporting
from memories.privacy.exports import pieces
from tests import factories
from tests.privacy.lease import claimed

NOW = factories.NOW


def somebody(owner: Tenant | None = None, **over: Any) -> EndUser:
    """With a row in every store but that of exports."""
    person = factories.end_user(owner, **over)
    talk = factories.session(person, [("user", "I moved to Leiden"), ("assistant", "How nice")], agent_id="travel")
    SessionQueue.objects.filter(session=talk).update(signals=["correction"])
    WorkingMemory.objects.filter(session=talk).update(summary="They talked of a move")
    run = factories.run(talk)
    stated = factories.fact(person, "Lives in Leiden", raw="I moved to Leiden", extraction=run)
    factories.evidence(stated, talk.turns.get(number=1), quote="I moved to Leiden")
    factories.evidence(stated, talk.turns.get(number=2), quote="How nice")
    revise(fact=stated, verb="add", actor=factories.COMMAND, before={}, reason="Seen", now=NOW)
    inferred = factories.fact(person, "Likes canals", source="implicit_inference", confidence=0.6)
    FactRelation.objects.create(
        tenant_id=inferred.tenant_id, fact=inferred, target=stated, type="related_to", created_at=NOW
    )
    FactRefusal.objects.create(
        tenant_id=person.tenant_id, end_user=person, kind="text", digest=b"d" * 32, created_at=NOW
    )
    merged = ChangeSet.objects.create(
        tenant=person.tenant, fact=stated, verb="merge", actor_kind="operator", reason="One", created_at=NOW
    )
    merged.changes.create(tenant_id=merged.tenant_id, table="fact", action="left", uuid=inferred.pk, version=1)
    factories.attachment(talk.turns.get(number=1), "A rye loaf costs 6.40 euros.")
    factories.episode(talk)
    factories.profile_section(person)
    factories.memory_file(person)
    factories.diary_entry(person, topic="bread")
    factories.trajectory(person, family="bread", outcome_reason="It rose.")
    factories.skill(person)
    factories.profile_revision(person)
    factories.dream(person)
    factories.group_fact(factories.memory_group(person), person)
    factories.review_note(factories.review_item(inferred, note="Asked for a second look"), "Called back")
    name = factories.end_user(person.tenant, merged_into=person)
    ChangeSet.objects.create(
        tenant=person.tenant, end_user=person, merged=name, verb="merge", actor_kind="operator", created_at=NOW
    )
    factories.idempotency_record(person)
    factories.logged_context(person, [stated], query="Where do I live?", memory="<memory>Leiden</memory>")
    factories.sent_block(person, [stated])
    factories.imported_row(person)
    factories.store_item(person, index_paths=["text"])
    known = factories.triple(person, "Max", "works_at", "Acme", agent_id="travel", turn=talk.turns.get(number=1))
    factories.triple(person, "Max", "works_at", "Acme Inc.").object.aliases.add(known.object)
    while vectors.embed_some().moved:
        """Until every text has its vector."""
    return person


__all__ = ["NOW", "by", "case_of", "data", "files", "made", "revise", "somebody", "unpacked"]


def by(operator: Operator) -> Actor:
    return Actor.operator(operator)


def case_of(person: EndUser, profile: str = CaseType.ACCESS, **over: Any) -> PrivacyCase:
    given = {"type": profile, "state": CaseState.VERIFIED, "channel": "email", "reference": "T-7", **over}
    return factories.privacy_case(person, **given)


def made(person: EndUser, profile: str = CaseType.ACCESS) -> PrivacyExport:
    """The export of a new case, as the worker makes it."""
    case = case_of(person, profile)
    exporting.make(claimed(case))
    return case.exports.get()


def files(export: PrivacyExport) -> dict[str, str]:
    return unpacked(b"".join(pieces.of(export)))


def unpacked(content: bytes) -> dict[str, str]:
    """Name → text of each file in the archive."""
    with ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name).decode() for name in archive.namelist()}


def data(export: PrivacyExport) -> Any:
    return json.loads(files(export)["data.json"])
