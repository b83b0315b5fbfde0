"""What people with seeded facts said, to measure the pages with: finished sessions and what came of them.

As with the facts nothing is armed, no model is called, and all of it counts as embedded though it has no vectors.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db import connection, transaction

from memories import audit, conf
from memories.audit import Actor
from memories.management import seeded_facts
from memories.models import (
    ActorKind,
    EndUser,
    Episode,
    ExtractionRun,
    Fact,
    FactEvidence,
    ReviewItem,
    Role,
    Session,
    SessionQueue,
    Status,
    Tenant,
    Trust,
    Turn,
    WorkingMemory,
)

# The first person is the one whose page has much to show.
FACTS_OF_ONE, SESSIONS_OF_ONE, TURNS_OF_ONE = 500, 20, 100
TURNS = 6
# One person in so many has a suggestion that waits, and one has a session that was given up.
WAITS, PARKED = 10, 100
STEP = 500
_COMMAND = Actor(kind=ActorKind.COMMAND)


def seed(*, tenant: Tenant, now: datetime) -> Iterator[int]:
    """Give each seeded person of the tenant a session; yields how many people have theirs."""
    people = EndUser.objects.filter(tenant=tenant, external_id__startswith=seeded_facts.PREFIX).order_by("pk")
    first = people.get(external_id=f"{seeded_facts.PREFIX}0")
    _much(first, now=now)
    done = 0
    while some := list(people.exclude(pk=first.pk)[done : done + STEP]):
        _talk([_session(person, TURNS, place) for place, person in enumerate(some, start=done)])
        done += len(some)
        yield done
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


@transaction.atomic
def _much(person: EndUser, *, now: datetime) -> None:
    """So many facts and turns for one person."""
    rules, held = conf.rules(person.tenant), Fact.objects.filter(end_user=person).count()
    made = [seeded_facts.made(person, place, now=now, rules=rules) for place in range(held, FACTS_OF_ONE)]
    audit.revise_new(Fact.objects.bulk_create(made), verb="seed", actor=_COMMAND)
    _talk([_session(person, TURNS_OF_ONE, place) for place in range(SESSIONS_OF_ONE)])


def _session(person: EndUser, turns: int, place: int) -> Session:
    """Not written yet."""
    begun = person.last_seen_at - timedelta(hours=place % 90 + 2)
    return Session(
        tenant=person.tenant,
        end_user=person,
        agent_id="support",
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
def _talk(sessions: list[Session]) -> None:
    """Write the sessions with all that came of them."""
    Session.objects.bulk_create(sessions)
    SessionQueue.objects.bulk_create(_queue(session, place) for place, session in enumerate(sessions))
    WorkingMemory.objects.bulk_create(_window(session) for session in sessions)
    turns = (_turn(session, number) for session in sessions for number in range(1, session.turn_count + 1))
    Turn.objects.bulk_create(turns, batch_size=STEP)
    runs = ExtractionRun.objects.bulk_create(_run(session) for session in sessions)
    Episode.objects.bulk_create(_episode(session) for session in sessions)
    waiting = [_suggestion(run, FACTS_OF_ONE + place) for place, run in enumerate(runs[::WAITS])]
    audit.revise_new(Fact.objects.bulk_create(waiting), verb="seed", actor=_COMMAND)
    FactEvidence.objects.bulk_create(_evidence(fact) for fact in waiting)
    ReviewItem.objects.bulk_create(_question(fact) for fact in waiting)


def _turn(session: Session, number: int) -> Turn:
    said = seeded_facts.SAYINGS[number % len(seeded_facts.SAYINGS)]
    return Turn(
        tenant=session.tenant,
        end_user=session.end_user,
        session=session,
        number=number,
        role=Role.USER if number % 2 else Role.ASSISTANT,
        content=f"{said} ({number})",
        token_count=24,
        created_at=session.created_at + timedelta(minutes=number),
    )


def _queue(session: Session, place: int) -> SessionQueue:
    """All is extracted, but for a session now and then that was given up."""
    if place % PARKED != PARKED - 1:
        return SessionQueue(session=session, extracted_number=session.turn_count)
    given_up = {"parked_at": session.last_turn_at, "attempts": 5, "failure": "model_timeout"}
    begun = session.created_at + timedelta(minutes=1)
    return SessionQueue(session=session, first_pending_at=begun, pending_user=True, **given_up)


def _window(session: Session) -> WorkingMemory:
    return WorkingMemory(session=session, episode_number=session.turn_count, episodes_made=1)


def _run(session: Session) -> ExtractionRun:
    begun = session.last_turn_at + timedelta(minutes=1)
    return ExtractionRun(
        tenant=session.tenant,
        end_user=session.end_user,
        session=session,
        first_number=1,
        last_number=session.turn_count,
        fed_turns=session.turn_count,
        status=ExtractionRun.Status.COMMITTED,
        attempt=1,
        extractor="seeded",
        started_at=begun,
        finished_at=begun + timedelta(seconds=2),
    )


def _episode(session: Session) -> Episode:
    times = {"started_at": session.created_at, "ended_at": session.last_turn_at}
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
        **times,
    )
    episode.say(f"Talked about moving the nightly jobs, and about a ride along the lake ({session.external_id})")
    episode.embedded_hash = episode.content_hash
    episode.refresh_decay(now=session.last_turn_at, rules=conf.rules(session.tenant))
    return episode


def _suggestion(run: ExtractionRun, place: int) -> Fact:
    """What only the assistant said."""
    fact = seeded_facts.made(run.end_user, place, now=run.started_at, rules=conf.rules(run.tenant))
    fact.trust, fact.status, fact.extraction = Trust.ASSISTANT, Status.PENDING, run
    return fact


def _evidence(fact: Fact) -> FactEvidence:
    """The assistant's first turn."""
    turn = Turn.objects.get(session__runs=fact.extraction, number=2)
    given = {"turn": turn, "session_id": turn.session_id, "turn_number": turn.number}
    return FactEvidence(fact=fact, **given, created_at=fact.created_at)


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
