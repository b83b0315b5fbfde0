"""The demo: one bilingual person with conversations, facts, episodes and a profile, so that a new hub is not empty.

Everything is written as it would stand after extraction: no queue row is armed and no model is called.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from memories import audit, conf, curation
from memories.audit import Actor
from memories.llm import tokens
from memories.management.demo_text import CONVERSATIONS, PROFILE, Conversation, Happening, Statement
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
    Source,
    Status,
    Tenant,
    Trust,
    Turn,
    WorkingMemory,
)
from memories.pipeline.review_items import Question, ask

USERNAME = "demo"
USER_ID = "lin-wei"
EXTRACTOR = "llm:demo"
PROMPT_VERSION = "demo"
TURN_GAP = timedelta(seconds=40)


@dataclass(frozen=True)
class Access:
    """How to get into the demo; shown to the person who started the hub and kept in demo.json."""

    username: str
    password: str
    api_key: str
    user_id: str


@transaction.atomic
def seed(*, now: datetime) -> Access | None:
    """Write the demo into an empty database; None, and nothing written, when there is a tenant or an operator."""
    if Tenant.objects.exists() or Operator.objects.exists():
        return None
    password = secrets.token_urlsafe(12)
    operator = Operator.objects.create_superuser(USERNAME, password=password)
    tenant = curation.save_tenant(tenant=Tenant(slug="demo", name="Demo"), actor=_command(), now=now)
    _, api_key = curation.create_api_key(
        tenant=tenant, name="Demo", scopes=list(Scope.values), actor=_command(), now=now
    )
    person = _person(tenant, now=now)
    for conversation in CONVERSATIONS:
        _converse(person, conversation, now=now - timedelta(days=conversation.days_ago))
    _speak_as_operator(person, operator, now=now)
    return Access(username=USERNAME, password=password, api_key=api_key, user_id=USER_ID)


def _command() -> Actor:
    return Actor(kind=ActorKind.COMMAND)


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


def _converse(person: EndUser, conversation: Conversation, *, now: datetime) -> None:
    """One finished conversation: its turns, its episodes, the run that read them, and the facts that it found."""
    turns = _turns(person, conversation, now=now)
    session = turns[0].session
    run = ExtractionRun.objects.create(
        tenant=person.tenant,
        end_user=person,
        session=session,
        first_number=1,
        last_number=len(turns),
        fed_turns=len(turns),
        status=ExtractionRun.Status.COMMITTED,
        attempt=1,
        extractor=EXTRACTOR,
        prompt_version=PROMPT_VERSION,
        outcome={"stored": len(conversation.statements)},
        started_at=now,
        finished_at=now,
    )
    for statement in conversation.statements:
        _fact(run, turns[statement.turn - 1], statement, now=now)
    for happening in conversation.happenings:
        _episode(turns[happening.first - 1 : happening.last], happening, now=now)


def _turns(person: EndUser, conversation: Conversation, *, now: datetime) -> list[Turn]:
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
    SessionQueue.objects.create(session=session, extracted_number=len(counts))
    WorkingMemory.objects.create(session=session, episode_number=len(counts))
    return Turn.objects.bulk_create(
        Turn(
            tenant=person.tenant,
            end_user=person,
            session=session,
            number=number,
            role=role,
            content=text,
            token_count=count,
            created_at=start + TURN_GAP * number,
        )
        for number, ((role, text), count) in enumerate(zip(conversation.turns, counts, strict=True), start=1)
    )


def _fact(run: ExtractionRun, turn: Turn, statement: Statement, *, now: datetime) -> Fact:
    fact = Fact(
        tenant=run.tenant,
        end_user=run.end_user,
        category=statement.category,
        key=statement.key,
        raw=statement.quote,
        confidence=statement.confidence,
        stated_confidence=statement.confidence,
        importance=statement.importance,
        source=Source.EXPLICIT,
        source_error=statement.source_error,
        trust=Trust.ASSISTANT if turn.role == "assistant" else Trust.USER,
        status=Status.PENDING if turn.role == "assistant" else Status.ACTIVE,
        extractor=run.extractor,
        prompt_version=run.prompt_version,
        extraction=run,
    )
    fact.say(statement.content)
    fact.begin(now=now, rules=conf.rules(run.tenant))
    fact.save()
    FactEvidence.objects.create(
        fact=fact, turn=turn, session=turn.session, turn_number=turn.number, quote=statement.quote, created_at=now
    )
    audit.revise(fact=fact, verb="extract", actor=Actor.run(run), before={}, reason="", now=now)
    if fact.status == Status.PENDING:
        ask(Question(ReviewItem.Reason.ASSISTANT_TRUST, fact), run=run, now=now)
    return fact


def _episode(turns: Sequence[Turn], happening: Happening, *, now: datetime) -> Episode:
    episode = Episode(
        tenant=turns[0].tenant,
        end_user=turns[0].end_user,
        session=turns[0].session,
        first_number=happening.first,
        last_number=happening.last,
        fed_turns=len(turns),
        key_topics=list(happening.key_topics),
        actions_taken=list(happening.actions_taken),
        outcomes=list(happening.outcomes),
        importance=happening.importance,
        quality=1.0,
        extractor=EXTRACTOR,
        prompt_version=PROMPT_VERSION,
        started_at=turns[0].created_at,
        ended_at=turns[-1].created_at,
        created_at=now,
        updated_at=now,
    )
    episode.say(happening.summary)
    episode.refresh_decay(now=now, rules=conf.rules(episode.tenant))
    episode.save()
    return episode


def _speak_as_operator(person: EndUser, operator: Operator, *, now: datetime) -> None:
    """One correction and one forgotten fact, so that history and trash are not empty."""
    actor = Actor.operator(operator)
    facts = Fact.objects.of(person.tenant, person)
    city = facts.get(key="home_city")
    curation.correct_fact(
        fact_id=city.pk,
        tenant=None,
        content="住在杭州西湖区,2024 年从上海搬来",
        reason="Confirmed by phone",
        actor=actor,
        now=now - timedelta(days=1),
    )
    passing = facts.get(key="current_mood")
    curation.forget_fact(fact_id=passing.pk, tenant=None, actor=actor, now=now, reason="Passing mood, not a memory")
