"""The demo: one bilingual person with conversations, facts, episodes and a profile, files, a diary, a graph, a group, a
dream and items of the store, so that no page of a new hub is empty.

Everything is written as if extracted already: no queue row is armed, and no model is called.
"""

import json
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db import transaction

from memories import audit, conf, private_files
from memories.audit import Actor
from memories.capture.agents import note_agents
from memories.checks import LOCAL_HOSTS
from memories.curation.access.keys import DEFAULT_DAYS, create_api_key
from memories.curation.facts.editing import correct_fact
from memories.curation.facts.forgetting import forget_fact
from memories.curation.tenants.settings import save_tenant
from memories.facts.candidate import Candidate
from memories.facts.review_items import ReviewQuestion, ask
from memories.llm import tokens
from memories.management import demo_kept
from memories.management.demo_text import CONVERSATIONS, PROFILE, DemoConversation, DemoEpisode, DemoFact
from memories.models import (
    ActorKind,
    EndUser,
    Episode,
    ExtractionRun,
    Fact,
    FactEvidence,
    Operator,
    ProfileSection,
    ReviewItem,
    Role,
    Scope,
    Session,
    SessionQueue,
    Status,
    Tenant,
    Trust,
    Turn,
    WorkingMemory,
)
from memories.scoring import terms
from memories.trust import SOURCE_OF

USERNAME = "demo"
USER_ID = "lin-wei"
EXTRACTOR = "llm:demo"
PROMPT_VERSION = "demo"
TURN_GAP = timedelta(seconds=40)
COMMAND = Actor(kind=ActorKind.COMMAND)


@dataclass(frozen=True)
class DemoAccess:
    """How to get into the demo. Shown to the person who starts the hub, and kept in demo.json."""

    username: str
    password: str
    api_key: str
    user_id: str


def wanted() -> bool:
    """Only where the hub is local: the demo's operator can do everything, and its key reads everything."""
    return settings.PUBLIC_HOST in LOCAL_HOSTS


def path() -> Path:
    """The file with the demo's sign-in and key, readable by its owner alone."""
    return Path(settings.HOME / "demo.json")


def seed_and_note(*, now: datetime) -> DemoAccess | None:
    """`seed`, and write the sign-in and key to the file."""
    with transaction.atomic():
        access = seed(now=now)
        if access:
            # Before the commit: without the file nobody would ever know the password.
            private_files.write(path(), json.dumps(asdict(access)).encode())
    return access


@transaction.atomic
def seed(*, now: datetime) -> DemoAccess | None:
    """Write the demo into an empty database. None, and no demo, when there is a tenant or an operator."""
    if Tenant.objects.exists() or Operator.objects.exists():
        return None
    password = secrets.token_urlsafe(12)
    operator = Operator.objects.create_superuser(USERNAME, password=password)
    tenant = save_tenant(tenant=Tenant(slug="demo", name="Demo"), actor=COMMAND, now=now)
    _, api_key = create_api_key(
        tenant=tenant,
        name="Demo",
        scopes=list(Scope.values),
        actor=COMMAND,
        now=now,
        expires_at=now + timedelta(days=DEFAULT_DAYS),
    )
    note_agents(tenant, {conversation.agent_id for conversation in CONVERSATIONS})
    person = _person(tenant, now=now)
    for conversation in CONVERSATIONS:
        _add_conversation(person, conversation, now=now - timedelta(days=conversation.days_ago))
    demo_kept.keep(person, extractor=EXTRACTOR, prompt_version=PROMPT_VERSION, actor=COMMAND, now=now)
    _curate(person, operator, now=now)
    return DemoAccess(username=USERNAME, password=password, api_key=api_key, user_id=USER_ID)


def _person(tenant: Tenant, *, now: datetime) -> EndUser:
    person = EndUser.objects.create(
        tenant=tenant,
        external_id=USER_ID,
        display_name="林薇 (Lin Wei)",
        time_zone="Asia/Shanghai",
        language="zh-CN",
        created_at=now - timedelta(days=max(talk.days_ago for talk in CONVERSATIONS)),
        last_seen_at=now - timedelta(days=min(talk.days_ago for talk in CONVERSATIONS)),
    )
    for section, summary in PROFILE.items():
        row = ProfileSection.objects.create(
            tenant=tenant,
            end_user=person,
            section=section,
            summary=summary,
            actor_kind=ActorKind.RUN,
            prompt_version=PROMPT_VERSION,
            updated_at=person.last_seen_at,
        )
        run = Actor(kind=ActorKind.RUN)
        audit.revise_section(row=row, verb="extract", actor=run, before=ProfileSection(), now=row.updated_at)
    return person


def _add_conversation(person: EndUser, conversation: DemoConversation, *, now: datetime) -> None:
    """One finished conversation: its turns, its extraction run, and the facts and episodes of the run."""
    turns = _turns(person, conversation, now=now)
    session = turns[0].session
    run = ExtractionRun.objects.create(
        tenant=person.tenant,
        end_user=person,
        session=session,
        first_number=1,
        last_number=len(turns),
        fed_turns=len(turns),
        status=ExtractionRun.RunStatus.COMMITTED,
        attempt=1,
        extractor=EXTRACTOR,
        prompt_version=PROMPT_VERSION,
        outcome={"stored": len(conversation.statements)},
        started_at=now,
        finished_at=now,
    )
    for statement in conversation.statements:
        _fact(run, turns[statement.turn - 1], statement, now=now)
    for episode in conversation.episodes:
        _episode(turns[episode.first - 1 : episode.last], episode, now=now)


def _turns(person: EndUser, conversation: DemoConversation, *, now: datetime) -> list[Turn]:
    start = now - TURN_GAP * len(conversation.turns)
    counts = [tokens.count(text) for _, text in conversation.turns]
    session = Session.objects.create(
        tenant=person.tenant,
        end_user=person,
        agent_id=conversation.agent_id,
        external_id=conversation.session_id,
        turn_count=len(counts),
        token_count=sum(counts),
        round_count=sum(role == Role.USER for role, _ in conversation.turns),
        created_at=start,
        last_turn_at=now,
    )
    SessionQueue.objects.create(tenant_id=session.tenant_id, session=session, extracted_number=len(counts))
    WorkingMemory.objects.create(tenant_id=session.tenant_id, session=session, episode_number=len(counts))
    return Turn.objects.bulk_create(
        Turn(
            tenant=person.tenant,
            end_user=person,
            session=session,
            number=number,
            role=role,
            content=text,
            terms=terms.pack(text),
            token_count=count,
            created_at=start + TURN_GAP * number,
        )
        for number, ((role, text), count) in enumerate(zip(conversation.turns, counts, strict=True), start=1)
    )


def _fact(run: ExtractionRun, turn: Turn, statement: DemoFact, *, now: datetime) -> Fact:
    is_users = turn.role != "assistant"
    trust = Trust.USER if is_users else Trust.ASSISTANT
    stated = Candidate(
        content=statement.content,
        category=statement.category,
        key=statement.key,
        raw=statement.quote,
        confidence=statement.confidence,
        importance=statement.importance,
        source=SOURCE_OF[trust],
        source_error=statement.source_error,
        trust=trust,
        extractor=run.extractor,
        prompt_version=run.prompt_version,
        extraction=run,
        stated_at=[turn.sent_at],
    )
    fact = stated.fact(run.end_user, status=Status.ACTIVE if is_users else Status.PENDING, now=now)
    fact.save()
    FactEvidence.objects.create(
        tenant_id=fact.tenant_id,
        fact=fact,
        turn=turn,
        session=turn.session,
        turn_number=turn.number,
        quote=statement.quote,
        created_at=now,
    )
    audit.revise(fact=fact, verb="extract", actor=Actor.run(run), before={}, reason="", now=now)
    if fact.status == Status.PENDING:
        ask(ReviewQuestion(ReviewItem.Reason.ASSISTANT_TRUST, fact), run=run, now=now)
    return fact


def _episode(turns: Sequence[Turn], given: DemoEpisode, *, now: datetime) -> Episode:
    episode = Episode(
        tenant=turns[0].tenant,
        end_user=turns[0].end_user,
        session=turns[0].session,
        first_number=given.first,
        last_number=given.last,
        fed_turns=len(turns),
        key_topics=list(given.key_topics),
        actions_taken=list(given.actions_taken),
        outcomes=list(given.outcomes),
        importance=given.importance,
        quality=1.0,
        extractor=EXTRACTOR,
        prompt_version=PROMPT_VERSION,
        started_at=turns[0].created_at,
        ended_at=turns[-1].created_at,
        created_at=now,
        updated_at=now,
    )
    episode.set_text(given.summary)
    episode.refresh_decay(now=now, rules=conf.rules(episode.tenant))
    episode.save()
    return episode


def _curate(person: EndUser, operator: Operator, *, now: datetime) -> None:
    """As the operator, correct one fact and forget another, so that history and trash are not empty."""
    actor = Actor.operator(operator)
    facts = Fact.objects.of(person.tenant, person)
    city = facts.get(key="home_city")
    correct_fact(
        fact_id=city.pk,
        tenant=None,
        content="住在杭州西湖区，2024 年从上海搬来",
        reason="Confirmed by phone",
        actor=actor,
        now=now - timedelta(days=1),
    )
    passing = facts.get(key="current_mood")
    forget_fact(fact_id=passing.pk, tenant=None, actor=actor, now=now, reason="Passing mood, not a memory")
