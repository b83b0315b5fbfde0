"""Makers of rows for tests: sensible defaults, everything overridable by keyword."""

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import F
from django.db.models.functions import Greatest
from django.utils import timezone

from memories import conf
from memories.audit import Actor
from memories.capture import ingest, seen_texts
from memories.capture.ingest import PostedMessage
from memories.curation.access.keys import create_api_key, create_management_key
from memories.graph import following, naming
from memories.kinds.served import SERVED
from memories.models import (
    ActorKind,
    Agent,
    APIKey,
    Attachment,
    Author,
    Backup,
    CaseState,
    CaseType,
    DecayPass,
    DiaryEntry,
    Dream,
    DreamedEpisode,
    DreamEdit,
    EndUser,
    Episode,
    Event,
    ExtractionRun,
    Fact,
    FactEvidence,
    FileVersion,
    GraphTriple,
    GroupEvidence,
    GroupFact,
    GroupMember,
    IdempotencyRecord,
    Import,
    ImportedRow,
    LoggedContext,
    ManagementKey,
    MemoryFile,
    MemoryGroup,
    Operator,
    Passage,
    PersonLink,
    PolicyDrop,
    PolicyFinding,
    PolicyTrial,
    PrivacyCase,
    PrivacyExport,
    ProfileRevision,
    ProfileSection,
    ReviewItem,
    ReviewNote,
    SavedFilter,
    Scope,
    SeenText,
    SentBlock,
    Session,
    Skill,
    SkillEvidence,
    SkillText,
    SkillTrial,
    SkillVersion,
    StoreItem,
    Tenant,
    Trajectory,
    TrajectoryStep,
    Trust,
    Turn,
    WebhookDelivery,
    WebhookEndpoint,
    WorkingMemory,
)
from memories.models.ids import new_id
from memories.text import value_texts

NOW = datetime(2026, 11, 3, 9, 12, tzinfo=UTC)
LATER = NOW + timedelta(days=1)
COMMAND = Actor(kind=ActorKind.COMMAND)
KEY = Actor(kind=ActorKind.KEY, id="4f1b", request_id="r-1")
STAFF = Actor(kind=ActorKind.OPERATOR, id="7", request_id="r-2")
_serial = itertools.count(1)


def tenant(**over: Any) -> Tenant:
    """A tenant; what is the name of a number becomes its own."""
    numbers = {name: over.pop(name) for name in conf.NUMBERS if name in over}
    given = {"slug": f"tenant-{next(_serial)}", "created_at": NOW, "numbers": numbers, **over}
    return Tenant.objects.create(**given)


def set_numbers(owner: Tenant, **numbers: Any) -> None:
    """Give the tenant these numbers of its own, as if it had been said in the admin."""
    owner.numbers = {**owner.numbers, **numbers}
    owner.save(update_fields=["numbers"])


def api_key(owner: Tenant, *, scopes: Sequence[str] = tuple(Scope.values), **over: Any) -> tuple[APIKey, str]:
    given = {"name": "test", "scopes": list(scopes), "actor": COMMAND, "now": NOW, **over}
    return create_api_key(tenant=owner, **given)


def management_key(owner: Tenant | None = None, **over: Any) -> tuple[ManagementKey, str]:
    """A management key of all tenants, or of one."""
    given = {"name": "terraform", "gives": Scope.values, "actor": COMMAND, "now": NOW, "expires_at": None, **over}
    return create_management_key(tenant=owner, **given)


def backup(**over: Any) -> Backup:
    return Backup.objects.create(**{"kind": "dump", "started_at": NOW, "finished_at": NOW, "size": 2_000_000, **over})


def end_user(owner: Tenant | None = None, **over: Any) -> EndUser:
    given = {"external_id": f"user-{next(_serial)}", "created_at": NOW, "last_seen_at": NOW, **over}
    return EndUser.objects.create(tenant=owner or tenant(), **given)


# What tests let a model say of a session that nobody wrote: the gate asks whether the person said it.
SAID = "Hello, I live in Leiden. At times in Delft, Utrecht or Paris!"


def session(person: EndUser, turns: Sequence[tuple[str, str]] = (("user", SAID),), **over: Any) -> Session:
    """A session with these (role, text) turns, stored through the real ingest."""
    given = {"session_id": f"session-{next(_serial)}", "agent_id": "", **over}
    messages = [PostedMessage(role=role, content=text) for role, text in turns]
    receipt = ingest.store_turns(tenant=person.tenant, user_id=person.external_id, messages=messages, **given)
    assert receipt.session
    return receipt.session


def episode(of: Session, summary: str = "Asked about the invoice of May", **over: Any) -> Episode:
    """An active episode of the session's first turn; `now` sets all of its times."""
    now = over.pop("now", NOW)
    given = {
        "first_number": 1,
        "last_number": 1,
        "fed_turns": 1,
        "importance": 0.6,
        "quality": 0.9,
        "extractor": "llm:test",
        "started_at": now,
        "ended_at": now,
        "created_at": now,
        "updated_at": now,
        **over,
    }
    row = Episode(tenant=of.tenant, end_user=of.end_user, session=of, **given)
    row.set_text(summary)
    row.refresh_decay(now=now, rules=conf.rules(of.tenant))
    row.save()
    seen = Greatest("episode_number", row.last_number)
    WorkingMemory.objects.filter(pk=of.pk).update(episode_number=seen, episodes_made=F("episodes_made") + 1)
    return row


def fact(person: EndUser, content: str = "Lives in Leiden", **over: Any) -> Fact:
    """An active fact of user trust; `now` sets all of its times."""
    now = over.pop("now", NOW)
    given = {
        "category": "knowledge",
        "confidence": 0.9,
        "source": "explicit_user_input",
        "trust": Trust.USER,
        "extractor": "llm:test",
        "created_at": now,
        "updated_at": now,
        "first_observed_at": over.get("created_at", now),
        "last_confirmed_at": now,
        "valid_from": now,
        **over,
    }
    row = Fact(tenant=person.tenant, end_user=person, **{"stated_confidence": given["confidence"], **given})
    row.set_text(content)
    row.refresh_decay(now=now, rules=conf.rules(person.tenant))
    row.save()
    if following.makes_triples(row):
        following.sync_triples([row], now=now)
    return row


def evidence(of: Fact, turn: Turn, quote: str = "") -> FactEvidence:
    return FactEvidence.objects.create(
        tenant_id=of.tenant_id,
        fact=of,
        turn=turn,
        session=turn.session,
        turn_number=turn.number,
        quote=quote,
        created_at=NOW,
    )


def run(of: Session, **over: Any) -> ExtractionRun:
    given = {
        "first_number": 1,
        "last_number": max(1, of.turn_count),
        "status": ExtractionRun.RunStatus.COMMITTED,
        "attempt": 1,
        "extractor": "llm:test",
        "started_at": NOW,
        **over,
    }
    return ExtractionRun.objects.create(tenant=of.tenant, end_user=of.end_user, session=of, **given)


def decay_pass(of: Tenant, **over: Any) -> DecayPass:
    """One that is done."""
    given = {"trigger": DecayPass.Trigger.SCHEDULE, "state": "done", "as_of": NOW, "started_at": NOW, **over}
    return DecayPass.objects.create(tenant=of, **given)


def idempotency_record(person: EndUser, **over: Any) -> IdempotencyRecord:
    """A kept answer that tells of this person."""
    key, _ = api_key(person.tenant)
    given = {"endpoint": "postTurns", "key_digest": b"k", "request_digest": b"r", "created_at": NOW, **over}
    row = IdempotencyRecord.objects.create(tenant_id=key.tenant_id, api_key=key, **given)
    row.end_users.add(person)
    return row


def profile_section(
    person: EndUser, section: str = "work_context", summary: str = "Runs a bakery.", **over: Any
) -> ProfileSection:
    given = {"actor_kind": ActorKind.RUN, "updated_at": NOW, **over}
    return ProfileSection.objects.create(
        tenant=person.tenant, end_user=person, section=section, summary=summary, **given
    )


def memory_file(
    person: EndUser, path: str = "/memories/notes.md", content: str = "Runs a bakery.\n", **over: Any
) -> MemoryFile:
    """As a key wrote it, with its first version."""
    given = {"actor_kind": ActorKind.KEY, "trust": "user", "size": len(content.encode())}
    moments = {"created_at": NOW, "updated_at": NOW}
    row = MemoryFile.objects.create(
        tenant=person.tenant, end_user=person, path=path, content=content, **given | moments | over
    )
    FileVersion.objects.create(
        tenant=person.tenant, file=row, version=1, verb="write", content=content, created_at=NOW, **given
    )
    return row


def diary_entry(person: EndUser, content: str = "Asked twice about rye.", **over: Any) -> DiaryEntry:
    """As a key wrote it for requests that name no agent."""
    given = {"actor_kind": ActorKind.KEY, "trust": "user", "created_at": NOW, **over}
    entry = DiaryEntry(tenant=person.tenant, end_user=person, **given)
    entry.set_text(content, topic=entry.topic)
    entry.save()
    return entry


def trajectory(person: EndUser, task: str = "Bake rye bread", **over: Any) -> Trajectory:
    """As a key posted it, with a call of a tool and its result; they say the task, too."""
    moments = dict.fromkeys(("started_at", "created_at", "updated_at"), NOW)
    row = Trajectory.objects.create(
        tenant=person.tenant, end_user=person, task=task, **{"trust": "user", "step_count": 2, **moments, **over}
    )
    of = {"tenant": person.tenant, "trajectory": row, "call_id": "c1"}
    TrajectoryStep.objects.create(position=1, kind="tool_call", tool="oven", arguments={"what": task}, **of)
    TrajectoryStep.objects.create(position=2, kind="tool_result", content=f"Done: {task}", **of)
    return row


def attachment(turn: Turn, *texts: str, **over: Any) -> Attachment:
    """A file that was read, with these passages; without any one that waits."""
    given: dict[str, Any] = {"name": "notes.md", "media_type": "text/markdown", "size": 9, "sha256": bytes(32)}
    given |= {"state": "read", "read_at": NOW} if texts else {"content": b"# Notes\n\nRye."}
    of_turn = {"tenant": turn.tenant, "end_user": turn.end_user, "session": turn.session, "turn": turn}
    made = Attachment.objects.create(**of_turn, created_at=turn.created_at, **{**given, **over})
    for number, text in enumerate(texts, start=1):
        row = Passage(tenant=turn.tenant, end_user=turn.end_user, attachment=made, number=number, start=0)
        row.author, row.created_at = Author.APPLICATION, made.created_at
        row.set_text(text, place="Notes")
        row.save(force_insert=True)
    return made


def memory_group(*people: EndUser, name: str = "Bakers", **over: Any) -> MemoryGroup:
    """A group whose members these people are; they may write."""
    group = MemoryGroup.objects.create(tenant=people[0].tenant, name=name, **{"created_at": NOW, **over})
    for person in people:
        GroupMember.objects.create(tenant=group.tenant, group=group, end_user=person, created_at=NOW)
    return group


def skill(*people: EndUser, text: str = "Warm the oven first", **over: Any) -> Skill:
    """A skill in use whose one step rests on a trajectory of each of these people, and a trial of the first."""
    owner, name = people[0].tenant, f"procedure-{next(_serial)}"
    set_numbers(owner, skills=True)
    given = {"name": name, "family": name, "scope": "tenant", "status": "serving", "served": 1, **over}
    made = Skill.objects.create(tenant=owner, created_at=NOW, changed_at=NOW, **given)
    version = SkillVersion.objects.create(
        tenant=owner, skill=made, number=1, state="served", actor_kind="command", created_at=NOW, served_from=NOW,
        reviewed_by=STAFF.id, reviewed_at=NOW,
    )  # fmt: skip
    step = SkillText.objects.create(tenant=owner, of_version=version, section="step", position=1, text=text)
    for person in people:
        SkillEvidence.objects.create(tenant=owner, text=step, trajectory=trajectory(person))
    SkillTrial.objects.create(
        tenant=owner, of_version=version, end_user=people[0], arm="served", via="files", session_id="s-tried",
        noted_at=NOW,
    )  # fmt: skip
    return made


def webhook(of: Tenant, **over: Any) -> WebhookEndpoint:
    """A webhook that wants everything, with a delivery that failed."""
    events = [event for event in Event.values if event != Event.TEST]
    url = f"https://hooks{next(_serial)}.example/in"
    secret = conf.encrypt_webhook_secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    given = {"name": "CRM", "url": url, "events": events, "secret": secret, "created_at": NOW, **over}
    made = WebhookEndpoint.objects.create(tenant=of, **given)
    webhook_delivery(made)
    return made


def webhook_delivery(of: WebhookEndpoint, person: EndUser | None = None, **over: Any) -> WebhookDelivery:
    given = {"event": Event.FACT_CREATED, "state": "failed", "failure": "refused", "status": 500, **over}
    return WebhookDelivery.objects.create(
        tenant=of.tenant, endpoint=of, end_user=person, **{"occurred_at": NOW, "ended_at": NOW, **given}
    )


def group_fact(
    group: MemoryGroup, *people: EndUser, content: str = "The oven is hot on Mondays", **over: Any
) -> GroupFact:
    """A fact of the group that these people said."""
    fact = GroupFact(tenant=group.tenant, group=group, **{"created_at": NOW, "said_at": NOW, **over})
    fact.set_text(content)
    fact.save()
    said: dict[str, Any] = {
        "actor_kind": ActorKind.KEY,
        "trust": Trust.USER,
        "created_at": NOW,
        "said_at": fact.said_at,
    }
    for person in people:
        GroupEvidence.objects.create(tenant=group.tenant, fact=fact, end_user=person, **said)
    return fact


def profile_revision(person: EndUser, after: str = "Runs a bakery.", **over: Any) -> ProfileRevision:
    """Of a version that was written, unless `version` is None."""
    given = {"section": "work_context", "version": 1, "verb": "write", "actor_kind": ActorKind.RUN, **over}
    return ProfileRevision.objects.create(
        tenant_id=person.tenant_id, end_user=person, after=after, **{"created_at": NOW, **given}
    )


def review_item(of: Fact | None, **over: Any) -> ReviewItem:
    """An open question about a suggestion, about `known`, or about `episode`."""
    about = of or over.get("known") or over["episode"]
    given = {"kind": "quarantined", "reason": "assistant_trust", "created_at": NOW, **over}
    return ReviewItem.objects.create(tenant=about.tenant, end_user=about.end_user, fact=of, **given)


def review_note(of: ReviewItem, text: str = "Asked the team", **over: Any) -> ReviewNote:
    given = {"actor_kind": ActorKind.OPERATOR, "actor_id": "7", "created_at": NOW, **over}
    return ReviewNote.objects.create(tenant=of.tenant, item=of, text=text, **given)


def poor_episode(of: Session, summary: str = "The user asked a question", **over: Any) -> ReviewItem:
    """A pending episode, and the open question about it."""
    given = {"status": "pending", "quality": 0.3, "flaws": ["boilerplate"], **over}
    row = episode(of, summary, **given)
    return review_item(None, episode=row, kind="poor_episode", reason="poor_quality")


def privacy_case(person: EndUser, **over: Any) -> PrivacyCase:
    """Received a moment ago, or in the state that is named, with what the state needs."""
    state = over.get("state", CaseState.RECEIVED)
    subject = conf.digest_of_person(person.tenant_id, person.external_id)
    values = {"type": CaseType.ERASURE, "opened_kind": "key", "opened_by": "k", "subject": subject}
    times = {"received_at": NOW, "due_at": NOW + timedelta(days=30), "created_at": NOW}
    if state not in (CaseState.RECEIVED, CaseState.REFUSED):
        values |= {"verified_how": "signed_in", "verified_kind": "operator", "verified_by": "1"}
        times["verified_at"] = NOW
    if state not in (CaseState.RECEIVED, CaseState.REFUSED, CaseState.VERIFIED, CaseState.SCOPED, CaseState.ON_HOLD):
        values |= {"approved_kind": "operator", "approved_by": "2"}
        times["approved_at"] = NOW
    return PrivacyCase.objects.create(tenant=person.tenant, end_user=person, **{**values, **times, **over})


def privacy_export(of: PrivacyCase, **over: Any) -> PrivacyExport:
    """`content` lies in pieces of four bytes."""
    content = over.pop("content", b"PK")
    values = {"profile": CaseType.ACCESS, "state": "ready", "size": len(content), "created_at": NOW}
    export = PrivacyExport.objects.create(tenant=of.tenant, case=of, **{**values, **over})
    for number, first in enumerate(range(0, len(content), 4)):
        export.pieces.create(tenant=of.tenant, number=number, content=content[first : first + 4])
    return export


def export_to_take(person: EndUser) -> PrivacyExport:
    """One that is ready, of a case that is completed."""
    case = privacy_case(person, type=CaseType.ACCESS, state=CaseState.COMPLETED)
    return privacy_export(case, expires_at=timezone.now() + timedelta(days=1))


def uploaded(of: Tenant, content: bytes = b"[]", **over: Any) -> Import:
    """An import that runs, with its file."""
    given = {"state": "running", "size": len(content), "actor_kind": ActorKind.COMMAND, "created_at": NOW, **over}
    row = Import.objects.create(tenant=of, kept_until=timezone.now() + timedelta(days=1), **given)
    row.pieces.create(tenant=of, number=0, content=content)
    return row


def imported_row(person: EndUser, **over: Any) -> ImportedRow:
    """What an import that is over made of the person."""
    given = {"state": "done", "actor_kind": ActorKind.COMMAND, "created_at": NOW}
    made_by = over.pop("made_by", None) or Import.objects.create(tenant=person.tenant, **given)
    given = {"kind": "fact", "row": new_id(), "end_user": person, **over}
    return ImportedRow.objects.create(tenant=person.tenant, made_by=made_by, **given)


def saved_filter(of: Operator, **over: Any) -> SavedFilter:
    given = {"model": "Fact", "name": "Mine", "choices": {"tab": "pinned"}, "created_at": NOW, **over}
    return SavedFilter.objects.create(operator=of, **given)


def operator(**over: Any) -> Operator:
    given = {"username": f"operator-{next(_serial)}", "is_staff": True, "is_superuser": True, **over}
    password = given.pop("password", "correct horse battery staple")
    row = Operator(**given)
    row.set_password(password)
    row.save()
    return row


def agent(of: Tenant, agent_id: str = "sales", **over: Any) -> Agent:
    return Agent.objects.create(tenant=of, agent_id=agent_id, **{"created_at": NOW, **over})


def dream(person: EndUser, text: str = "Bakes rye bread", **over: Any) -> Dream:
    """One that is done, with the edit that it applied and the newest episode as read; a model was asked."""
    given = {"trigger": "schedule", "state": "applied", "started_at": NOW, "finished_at": NOW, "episodes": 1, **over}
    row = Dream.objects.create(
        tenant=person.tenant,
        end_user=person,
        summary="USER.md +1",
        extractor="llm:test",
        prompt_version="dream_edits-3",
        **given,
    )
    edit = {"path": "/USER.md", "new_text": text, "state": "waiting" if row.state == "waiting" else "applied"}
    DreamEdit.objects.create(tenant=person.tenant, dream=row, number=1, **edit)
    if read := Episode.objects.filter(end_user=person, dreamed=None).first():
        DreamedEpisode.objects.create(tenant=person.tenant, dream=row, episode=read)
    return row


def store_item(person: EndUser, value: dict[str, Any] | None = None, **over: Any) -> StoreItem:
    """An item under a namespace of the person."""
    stored = {"text": "Drinks green tea."} if value is None else value
    given = {
        "namespace": f"memories.{person.external_id}",
        "key": "tea",
        "value": stored,
        "content_hash": value_texts.digest(value_texts.of_value(stored, over.get("index_paths"))),
        "created_at": NOW,
        "updated_at": NOW,
        **over,
    }
    return StoreItem.objects.create(tenant=person.tenant, **{"end_user": person, **given})


def seen_text(person: EndUser, text: str = "I live in Leiden.", *, author: str = Author.PERSON) -> SeenText:
    """What passed through the gateway."""
    key_id = new_id()
    seen_texts.note(person, [seen_texts.Noted(text, author)], session_id=None, key_id=key_id, now=NOW)
    return SeenText.objects.get(key_id=key_id)


def logged_context(person: EndUser, rows: Sequence[Any] = (), **over: Any) -> LoggedContext:
    """What was served of these memories."""
    kinds = {kind.model: (name, kind) for name, kind in SERVED.items()}
    others = [row.pk for row in rows if getattr(row, f"{kinds[type(row)][1].owner}_id") != person.pk]
    texts = [row.pk for row in rows] if over.get("memory") else []
    given = {
        "items": [{"kind": kinds[type(row)][0], "id": str(row.pk), "score": 0.5} for row in rows],
        "rests_on": texts or others,
        "asked": bool(over.get("query")),
        "token_count": 40,
        "max_tokens": 2000,
        "created_at": NOW,
        **over,
    }
    return LoggedContext.objects.create(tenant=person.tenant, end_user=person, **given)


def policy_finding(found: Fact, **over: Any) -> PolicyFinding:
    """What the tenant's dry run found of a fact."""
    now = {"created_at": NOW, "ended_at": NOW}
    trial = PolicyTrial.objects.filter(tenant=found.tenant).first()
    trial = trial or PolicyTrial.objects.create(tenant=found.tenant, categories=[], actor_kind="command", **now)
    given = {"trial": trial, "end_user": found.end_user, "kind": "fact", "row": found.pk, "category": "health", **over}
    return PolicyFinding.objects.create(tenant=found.tenant, **given)


def policy_drop(of: Tenant) -> PolicyDrop:
    """A text that the first version of the tenant's content policy did not allow."""
    named = {"day": NOW.date(), "version": 1, "category": "health", "road": "statement"}
    return PolicyDrop.objects.get_or_create(tenant=of, **named, defaults={"count": 1, "last_at": NOW})[0]


def sent_block(person: EndUser, rows: Sequence[Any] = (), **over: Any) -> SentBlock:
    """What the gateway sent of these memories."""
    kinds = {kind.model: name for name, kind in SERVED.items()}
    given = {
        "session": b"s" * 16,
        "place": new_id().bytes,
        "kind": "volatile",
        "text": "<memory>Bakes</memory>",
        "items": [{"kind": kinds[type(row)], "id": str(row.pk)} for row in rows],
        "rests_on": [row.pk for row in rows],
        "token_count": 40,
        "sent_at": NOW,
        **over,
    }
    return SentBlock.objects.create(tenant=person.tenant, end_user=person, **given)


def person_link(person: EndUser) -> PersonLink:
    """A link to the person's own page that nobody has opened yet."""
    key, _ = api_key(person.tenant)
    given = {"generation": person.generation, "allow": [], "expires_at": NOW + timedelta(minutes=5), "created_at": NOW}
    return PersonLink.objects.create(tenant=person.tenant, end_user=person, key=key, **given)


def triple(person: EndUser, subject: str, predicate: str, object_: str, **over: Any) -> GraphTriple:
    """A stated triple of user trust that holds since NOW."""
    now = over.pop("now", NOW)
    entities = naming.ensure(person.tenant_id, person.pk, [subject, object_], now=now)
    given: dict[str, Any] = {
        "valid_from": now, "dated_at": over.get("valid_from") or now, "confidence": 0.9, "trust": Trust.USER,
        "extractor": "api", "actor_kind": ActorKind.KEY, "created_at": now, "updated_at": now, **over,
    }  # fmt: skip
    return GraphTriple.objects.create(
        tenant=person.tenant,
        end_user=person,
        subject=entities[naming.digest_of(subject)],
        predicate=predicate,
        object=entities[naming.digest_of(object_)],
        **given,
    )
