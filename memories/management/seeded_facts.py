"""Facts by the million, to measure with: the first person's are made with care, the others' are copies of them made
inside the database.

They are finished: nothing is armed, no model is called, and they count as embedded though they have no vectors.
"""

import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db import connection, transaction

from memories import audit, conf
from memories.audit import REVISED_MOMENTS, Actor
from memories.models import ActorKind, Category, EndUser, Fact, Source, Status, Tenant, Trust
from memories.models.ids import new_id

PREFIX = "seeded-"
# Facts of one transaction, about a second.
STEP = 10_000
SAYINGS = (
    "Prefers short answers with an example in Python",
    "Works as a data engineer at a logistics start-up in Hangzhou",
    "对花生过敏，出门时总是带着药",
    "Plans to move the nightly jobs from cron to a queue before the spring",
    "喜欢在周末去西湖边骑自行车，然后喝龙井茶",
)
# Against now, when some are over: before the pass of today, and before one that judges by the ninth day from it.
ENDS = (timedelta(days=-1), timedelta(days=8))
# People's facts are older than the first one's by up to so long, so that neither all dates nor all scores are one.
SPREAD = timedelta(days=7)
_STRIDE = timedelta(hours=61, minutes=7, seconds=11)
# Of its life how much a fact has had that goes to nobody's trash within weeks.
_LIVED = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
_ENDLESS = timedelta(days=400)
_SHIFTED = (
    *("created_at", "updated_at", "first_observed_at", "last_confirmed_at", "valid_from"),
    *("expires_at", "trashed_at", "forget_at"),
)


def seed(*, tenant: Tenant, people: int, facts_each: int, now: datetime) -> Iterator[int]:
    """Add so many people with so many facts each, some thousand facts in a transaction; yields how many are added.

    Of each 50 facts of a person, by the numbers that are the hub's own, two have faded, one has expired and one has
    been in the trash for long enough; nine days later as many more have. Stored scores are up to a week old.
    """
    first = EndUser.objects.filter(tenant=tenant, external_id__startswith=PREFIX).count()
    model = _model(tenant, f"{PREFIX}{first}", facts_each, now=now)
    yield facts_each
    each = max(1, STEP // facts_each)
    for start in range(1, people, each):
        count = min(each, people - start)
        _copy(model, [_person(model, first + number) for number in range(start, start + count)], facts_each)
        if start == 1 or start + count == people:
            # The first time lest the plans for an empty table be kept.
            _analyze()
        yield (start + count) * facts_each


@transaction.atomic
def _model(tenant: Tenant, name: str, count: int, *, now: datetime) -> EndUser:
    person = EndUser.objects.create(tenant=tenant, external_id=name, created_at=now, last_seen_at=now)
    rules = conf.rules(tenant)
    facts = Fact.objects.bulk_create(made(person, place, now=now, rules=rules) for place in range(count))
    audit.revise_new(facts, verb="seed", actor=Actor(kind=ActorKind.COMMAND))
    return person


def made(person: EndUser, place: int, *, now: datetime, rules: conf.Rules) -> Fact:
    """A person's fact of this place, not written yet."""
    confidence, fades = 0.7 + place % 25 / 100, place % 25 < len(ENDS)
    fact = Fact(
        tenant=person.tenant,
        end_user=person,
        category=Category.CONTEXT if fades else Category.values[place % len(Category)],
        confidence=confidence,
        stated_confidence=confidence,
        importance=0.3 + place % 7 / 10,
        mentions=1 + place % 3,
        source=Source.EXPLICIT,
        trust=Trust.USER,
        status=Status.ACTIVE,
        extractor="seeded",
    )
    fact.say(f"{SAYINGS[place % len(SAYINGS)]} ({place})")
    fact.embedded_hash = fact.content_hash
    fact.begin(now=now, rules=rules)
    life = fact.forget_at - now if fact.forget_at else _ENDLESS
    age = life - ENDS[place % 25] if fades else life * _LIVED[place % len(_LIVED)]
    fact.begin(now=now - age, rules=rules)
    fact.refresh_decay(now=now, rules=rules)
    _end(fact, place % 50, now=now, rules=rules)
    return fact


def _end(fact: Fact, place: int, *, now: datetime, rules: conf.Rules) -> None:
    """Of each 50 facts let some have a date, and some be in the trash."""
    if place in (10, 11):
        fact.expires_at = now + ENDS[place - 10]
    if place in (20, 21):
        fact.status, fact.trashed_at = Status.TRASHED, now + ENDS[place - 20] - timedelta(days=rules.trash_days)


def _person(model: EndUser, number: int) -> EndUser:
    """Not written yet; was last seen, and said all, as much earlier as its number says."""
    seen = model.last_seen_at - number * _STRIDE % SPREAD
    return EndUser(tenant=model.tenant, external_id=f"{PREFIX}{number}", created_at=seen, last_seen_at=seen)


@transaction.atomic
def _copy(model: EndUser, people: list[EndUser], facts_each: int) -> None:
    EndUser.objects.bulk_create(people)
    ids = [new_id() for _ in range(len(people) * facts_each)]
    named: dict[str, list[uuid.UUID] | uuid.UUID] = {"model": model.pk, "people": [person.pk for person in people]}
    with connection.cursor() as cursor:
        cursor.execute(_copying(), {**named, "ids": ids})


def _copying() -> str:
    instead = {name: f"t.{name} - (m.last_seen_at - p.last_seen_at)" for name in _SHIFTED}
    instead |= {"id": "(%(ids)s::uuid[])[row_number() OVER (ORDER BY p.id, t.id)]", "end_user_id": "p.id"}
    columns = [str(field.column) for field in Fact._meta.concrete_fields]
    taken = ", ".join(instead.get(column, f"t.{column}") for column in columns)
    told = ", ".join(f"'{name}', made.{name}" for name in REVISED_MOMENTS)
    # The columns are ours.
    return f"""
        WITH made AS (
            INSERT INTO memories_fact ({", ".join(columns)}) SELECT {taken}
            FROM memories_fact t JOIN memories_enduser m ON m.id = t.end_user_id, memories_enduser p
            WHERE t.end_user_id = %(model)s AND p.id = ANY(%(people)s)
            RETURNING id, content_hash, created_at, {", ".join(REVISED_MOMENTS)}
        )
        INSERT INTO memories_factrevision
            (fact_id, version, verb, actor_kind, actor_id, before, after, reason, created_at)
        SELECT made.id, r.version, r.verb, r.actor_kind, r.actor_id, r.before, r.after || jsonb_build_object({told}),
            r.reason, made.created_at
        FROM made JOIN memories_fact t ON t.end_user_id = %(model)s AND t.content_hash = made.content_hash
        JOIN memories_factrevision r ON r.fact_id = t.id
    """  # noqa: S608


def _analyze() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE memories_enduser, memories_fact, memories_factrevision")
