"""People with facts, as many as wanted: one is made with care, the others are copies made inside the database."""

from django.db import connection, connections, models
from django.db.models import F

from memories.models import EndUser, Fact, Tenant
from tests import factories

FACTS_EACH = 50
CATEGORIES = ("preference", "knowledge", "context", "goal", "constraint", "correction", "relationship", "skill")
SAYINGS = (
    "Prefers short answers with an example in Python",
    "Works as a data engineer at a logistics start-up in Hangzhou",
    "对花生过敏，出门时总是带着药",
    "Plans to move the nightly jobs from cron to a queue before the spring",
    "喜欢在周末去西湖边骑自行车，然后喝龙井茶",
)


def people(tenant: Tenant, count: int) -> list[str]:
    """The user ids of `count` people, each with 50 facts; a second call finds those of the first."""
    people = list(
        EndUser.objects.of(tenant).filter(external_id__startswith="fan").values_list("external_id", flat=True)
    )
    if not people:
        people = _made(tenant, count)
    # The clients are forked: they must not share a connection.
    connections.close_all()
    return people


def _made(tenant: Tenant, count: int) -> list[str]:
    model = factories.end_user(tenant, external_id="fan-0")
    for place in range(FACTS_EACH):
        text = f"{SAYINGS[place % len(SAYINGS)]} ({place})"
        category = CATEGORIES[place % len(CATEGORIES)]
        factories.fact(model, text, category=category, confidence=0.7 + place % 25 / 100)
    # They count as embedded: an embedder at work on 100,000 texts would have one of the two cores.
    Fact.objects.filter(end_user=model).update(embedded_hash=F("content_hash"))
    names = [f"fan-{number}" for number in range(count)]
    with connection.cursor() as cursor:
        statement = copied(EndUser, id="uuidv7()", external_id="'fan-' || n")
        cursor.execute(f"{statement} CROSS JOIN generate_series(1, %s) n WHERE t.id = %s", [count - 1, model.pk])
        statement = copied(Fact, id="uuidv7()", end_user_id="p.id")
        among = "JOIN memories_enduser p ON p.tenant_id = t.tenant_id AND p.external_id LIKE 'fan-%%'"
        cursor.execute(f"{statement} {among} AND p.id <> %s WHERE t.end_user_id = %s", [model.pk, model.pk])
        cursor.execute("ANALYZE")
    return names


def copied(model: type[models.Model], **instead: str) -> str:
    """INSERT … SELECT … of all columns, some of them by another expression; the rows are `t`."""
    columns = [str(field.column) for field in model._meta.concrete_fields]
    taken = ", ".join(instead.get(column, f't."{column}"') for column in columns)
    named = ", ".join(f'"{column}"' for column in columns)
    return f"INSERT INTO {model._meta.db_table} ({named}) SELECT {taken} FROM {model._meta.db_table} t"
