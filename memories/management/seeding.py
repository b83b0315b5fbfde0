"""Invented people with facts by the million, and with sessions, for measurements.

The first person's facts are built here. The database copies them for the other people. All is finished: nothing is
armed, no model is called, and everything counts as embedded although it has no vectors.
"""

import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db import connection, transaction

from memories import audit, conf
from memories.audit import REVISED_MOMENTS, Actor
from memories.facts.candidate import Candidate
from memories.models import (
    ActorKind,
    Agent,
    Category,
    EndUser,
    Episode,
    ExtractionRun,
    Fact,
    FactEvidence,
    ReviewItem,
    Role,
    Session,
    SessionQueue,
    Source,
    Status,
    Tenant,
    Trust,
    Turn,
    WorkingMemory,
)
from memories.models.ids import new_id

PREFIX = "seeded-"
AGENT = "support"
# In one transaction, of about a second.
FACTS_AT_ONCE = 10_000
SESSIONS_AT_ONCE = 500
TEXTS = (
    "Prefers short answers with an example in Python",
    "Works as a data engineer at a logistics start-up in Hangzhou",
    "对花生过敏，出门时总是带着药",
    "Plans to move the nightly jobs from cron to a queue before the spring",
    "喜欢在周末去西湖边骑自行车，然后喝龙井茶",
)
# When some facts end, from now: before today's decay pass, and before one nine days later.
ENDS = (timedelta(days=-1), timedelta(days=8))
# The other people's facts are older than the first person's by up to so long, so that dates and scores differ.
SPREAD = timedelta(days=7)
# The first person's page has much to show.
FACTS_OF_FIRST, SESSIONS_OF_FIRST, TURNS_OF_FIRST = 500, 20, 100
TURNS = 6
# One person in so many has a suggestion that waits for review, and one a parked session.
WAITS, PARKED = 10, 100
COMMAND = Actor(kind=ActorKind.COMMAND)
_STRIDE = timedelta(hours=61, minutes=7, seconds=11)
# Which part of its life a fact has behind it that does not fade within weeks.
_LIVED = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
_ENDLESS = timedelta(days=400)
_SHIFTED = (
    *("created_at", "updated_at", "first_observed_at", "last_confirmed_at", "valid_from"),
    *("expires_at", "trashed_at", "forget_at"),
)


def seed_facts(*, tenant: Tenant, people: int, facts_each: int, now: datetime) -> Iterator[int]:
    """Add so many people with so many facts each, some thousand in a transaction. Yields how many facts there are.

    By the hub's own numbers, of each 50 facts of a person two have faded, one has expired, and one has been in the
    trash for long enough. Nine days later as many more have. Stored scores are up to a week old.
    """
    first = EndUser.objects.filter(tenant=tenant, external_id__startswith=PREFIX).count()
    model = _first_person(tenant, f"{PREFIX}{first}", facts_each, now=now)
    yield facts_each
    each = max(1, FACTS_AT_ONCE // facts_each)
    for start in range(1, people, each):
        count = min(each, people - start)
        _copy(model, [_person(model, first + number) for number in range(start, start + count)], facts_each)
        if start == 1 or start + count == people:
            # The first time so that PostgreSQL drops its plans for empty tables.
            with connection.cursor() as cursor:
                cursor.execute("ANALYZE memories_enduser, memories_fact, memories_factrevision")
        yield (start + count) * facts_each


@transaction.atomic
def _first_person(tenant: Tenant, name: str, count: int, *, now: datetime) -> EndUser:
    person = EndUser.objects.create(tenant=tenant, external_id=name, created_at=now, last_seen_at=now)
    rules = conf.rules(tenant)
    facts = Fact.objects.bulk_create(_fact(person, place, now=now, rules=rules) for place in range(count))
    audit.revise_new(facts, verb="seed", actor=COMMAND)
    return person


def _fact(person: EndUser, place: int, *, now: datetime, rules: conf.Rules) -> Fact:
    """Number `place` of a person's facts, unsaved."""
    confidence, fades = 0.7 + place % 25 / 100, place % 25 < len(ENDS)
    stated = Candidate(
        content=f"{TEXTS[place % len(TEXTS)]} ({place})",
        category=Category.CONTEXT if fades else Category.values[place % len(Category)],
        confidence=confidence,
        importance=0.3 + place % 7 / 10,
        mentions=1 + place % 3,
        source=Source.EXPLICIT,
        trust=Trust.USER,
        extractor="seeded",
    )
    fact = stated.fact(person, status=Status.ACTIVE, now=now)
    fact.embedded_hash = fact.content_hash
    life = fact.forget_at - now if fact.forget_at else _ENDLESS
    age = life - ENDS[place % 25] if fades else life * _LIVED[place % len(_LIVED)]
    fact.set_times(now=now - age, rules=rules)
    fact.refresh_decay(now=now, rules=rules)
    if place % 50 in (10, 11):
        fact.expires_at = now + ENDS[place % 50 - 10]
    if place % 50 in (20, 21):
        fact.status, fact.trashed_at = Status.TRASHED, now + ENDS[place % 50 - 20] - timedelta(days=rules.trash_days)
    return fact


def _person(model: EndUser, number: int) -> EndUser:
    """Unsaved. Their number decides how much older they and their facts are than the first person."""
    seen = model.last_seen_at - number * _STRIDE % SPREAD
    return EndUser(tenant=model.tenant, external_id=f"{PREFIX}{number}", created_at=seen, last_seen_at=seen)


@transaction.atomic
def _copy(model: EndUser, people: list[EndUser], facts_each: int) -> None:
    EndUser.objects.bulk_create(people)
    ids = [new_id() for _ in range(len(people) * facts_each)]
    named: dict[str, list[uuid.UUID] | uuid.UUID] = {"model": model.pk, "people": [person.pk for person in people]}
    with connection.cursor() as cursor:
        cursor.execute(_copy_statement(), {**named, "ids": ids})


def _copy_statement() -> str:
    instead = {name: f"t.{name} - (m.last_seen_at - p.last_seen_at)" for name in _SHIFTED}
    instead |= {"id": "(%(ids)s::uuid[])[row_number() OVER (ORDER BY p.id, t.id)]", "end_user_id": "p.id"}
    columns = [str(field.column) for field in Fact._meta.concrete_fields]
    values = ", ".join(instead.get(column, f"t.{column}") for column in columns)
    moments = ", ".join(f"'{name}', made.{name}" for name in REVISED_MOMENTS)
    # The columns are ours.
    return f"""
        WITH made AS (
            INSERT INTO memories_fact ({", ".join(columns)}) SELECT {values}
            FROM memories_fact t JOIN memories_enduser m ON m.id = t.end_user_id, memories_enduser p
            WHERE t.end_user_id = %(model)s AND p.id = ANY(%(people)s)
            RETURNING id, tenant_id, content_hash, created_at, {", ".join(REVISED_MOMENTS)}
        )
        INSERT INTO memories_factrevision
            (tenant_id, fact_id, version, verb, actor_kind, actor_id, before, after, reason, created_at)
        SELECT made.tenant_id, made.id, r.version, r.verb, r.actor_kind, r.actor_id, r.before,
            r.after || jsonb_build_object({moments}), r.reason, made.created_at
        FROM made JOIN memories_fact t ON t.end_user_id = %(model)s AND t.content_hash = made.content_hash
        JOIN memories_factrevision r ON r.fact_id = t.id
    """  # noqa: S608


def seed_sessions(*, tenant: Tenant, now: datetime) -> Iterator[int]:
    """Give each seeded person of the tenant a session. Yields how many people have one."""
    Agent.objects.get_or_create(tenant=tenant, agent_id=AGENT, defaults={"created_at": now})
    people = EndUser.objects.filter(tenant=tenant, external_id__startswith=PREFIX).order_by("pk")
    first = people.get(external_id=f"{PREFIX}0")
    _add_much(first, now=now)
    done = 0
    while some := list(people.exclude(pk=first.pk)[done : done + SESSIONS_AT_ONCE]):
        _add_sessions([_session(person, TURNS, place) for place, person in enumerate(some, start=done)])
        done += len(some)
        yield done
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


@transaction.atomic
def seed_talker(*, tenant: Tenant, turns: int, now: datetime) -> EndUser:
    """One more person, with so many turns, and facts that all came of them."""
    person = EndUser.objects.create(tenant=tenant, external_id="talker", created_at=now, last_seen_at=now)
    _add_sessions([_session(person, TURNS_OF_FIRST, place) for place in range(turns // TURNS_OF_FIRST)])
    rules = conf.rules(tenant)
    made = [_fact(person, place, now=now, rules=rules) for place in range(FACTS_OF_FIRST)]
    audit.revise_new(Fact.objects.bulk_create(made), verb="seed", actor=COMMAND)
    cited = list(Turn.objects.filter(end_user=person).order_by("created_at", "pk")[:: max(1, turns // len(made))])
    FactEvidence.objects.bulk_create(map(_cite, made, cited))
    return person


@transaction.atomic
def _add_much(person: EndUser, *, now: datetime) -> None:
    """Give the first person many more facts and turns."""
    rules, held = conf.rules(person.tenant), Fact.objects.filter(end_user=person).count()
    made = [_fact(person, place, now=now, rules=rules) for place in range(held, FACTS_OF_FIRST)]
    audit.revise_new(Fact.objects.bulk_create(made), verb="seed", actor=COMMAND)
    _add_sessions([_session(person, TURNS_OF_FIRST, place) for place in range(SESSIONS_OF_FIRST)])


def _session(person: EndUser, turns: int, place: int) -> Session:
    begun = person.last_seen_at - timedelta(hours=place % 90 + 2)
    return Session(
        tenant=person.tenant,
        end_user=person,
        agent_id=AGENT,
        external_id=f"chat-{place}",
        turn_count=turns,
        token_count=turns * 24,
        round_count=turns // 2,
        embedded_number=turns,
        created_at=begun,
        last_turn_at=begun + timedelta(minutes=turns),
        ended_at=begun + timedelta(minutes=turns),
    )


@transaction.atomic
def _add_sessions(sessions: list[Session]) -> None:
    """Save the sessions with their queues, turns, runs, episodes and suggestions."""
    Session.objects.bulk_create(sessions)
    SessionQueue.objects.bulk_create(_queue(session, place) for place, session in enumerate(sessions))
    WorkingMemory.objects.bulk_create(
        WorkingMemory(tenant_id=session.tenant_id, session=session, episode_number=session.turn_count, episodes_made=1)
        for session in sessions
    )
    turns = (_turn(session, number) for session in sessions for number in range(1, session.turn_count + 1))
    Turn.objects.bulk_create(turns, batch_size=SESSIONS_AT_ONCE)
    runs = ExtractionRun.objects.bulk_create(_run(session) for session in sessions)
    Episode.objects.bulk_create(_episode(session) for session in sessions)
    waiting = [_suggestion(run, FACTS_OF_FIRST + place) for place, run in enumerate(runs[::WAITS])]
    audit.revise_new(Fact.objects.bulk_create(waiting), verb="seed", actor=COMMAND)
    FactEvidence.objects.bulk_create(
        _cite(fact, Turn.objects.get(session__runs=fact.extraction, number=2)) for fact in waiting
    )
    ReviewItem.objects.bulk_create(_question(fact) for fact in waiting)


def _turn(session: Session, number: int) -> Turn:
    return Turn(
        tenant=session.tenant,
        end_user=session.end_user,
        session=session,
        number=number,
        role=Role.USER if number % 2 else Role.ASSISTANT,
        content=f"{TEXTS[number % len(TEXTS)]} ({number})",
        token_count=24,
        created_at=session.created_at + timedelta(minutes=number),
    )


def _queue(session: Session, place: int) -> SessionQueue:
    """All turns are extracted, except in a parked session."""
    if place % PARKED != PARKED - 1:
        return SessionQueue(tenant_id=session.tenant_id, session=session, extracted_number=session.turn_count)
    return SessionQueue(
        tenant_id=session.tenant_id,
        session=session,
        first_pending_at=session.created_at + timedelta(minutes=1),
        pending_user=True,
        parked_at=session.last_turn_at,
        attempts=5,
        failure="model_timeout",
    )


def _run(session: Session) -> ExtractionRun:
    begun = session.last_turn_at + timedelta(minutes=1)
    return ExtractionRun(
        tenant=session.tenant,
        end_user=session.end_user,
        session=session,
        first_number=1,
        last_number=session.turn_count,
        fed_turns=session.turn_count,
        status=ExtractionRun.RunStatus.COMMITTED,
        attempt=1,
        extractor="seeded",
        started_at=begun,
        finished_at=begun + timedelta(seconds=2),
    )


def _episode(session: Session) -> Episode:
    episode = Episode(
        tenant=session.tenant,
        end_user=session.end_user,
        session=session,
        first_number=1,
        last_number=session.turn_count,
        fed_turns=session.turn_count,
        importance=0.6,
        quality=0.9,
        extractor="seeded",
        created_at=session.last_turn_at,
        updated_at=session.last_turn_at,
        started_at=session.created_at,
        ended_at=session.last_turn_at,
    )
    episode.set_text(f"Talked about moving the nightly jobs, and about a ride along the lake ({session.external_id})")
    episode.embedded_hash = episode.content_hash
    episode.refresh_decay(now=session.last_turn_at, rules=conf.rules(session.tenant))
    return episode


def _suggestion(run: ExtractionRun, place: int) -> Fact:
    """A fact that only the assistant stated, unsaved."""
    fact = _fact(run.end_user, place, now=run.started_at, rules=conf.rules(run.tenant))
    fact.trust, fact.status, fact.extraction = Trust.ASSISTANT, Status.PENDING, run
    return fact


def _cite(fact: Fact, turn: Turn) -> FactEvidence:
    return FactEvidence(
        tenant_id=fact.tenant_id,
        fact=fact,
        turn=turn,
        session_id=turn.session_id,
        turn_number=turn.number,
        created_at=fact.created_at,
    )


def _question(fact: Fact) -> ReviewItem:
    return ReviewItem(
        tenant=fact.tenant,
        end_user=fact.end_user,
        fact=fact,
        kind=ReviewItem.Kind.QUARANTINED,
        reason=ReviewItem.Reason.ASSISTANT_TRUST,
        extraction=fact.extraction,
        created_at=fact.created_at,
    )
