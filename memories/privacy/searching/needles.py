"""What the verification of an erasure looks for: taken before the first row goes, and kept encrypted in the case."""

import base64
import json
import uuid
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from cryptography.fernet import Fernet, InvalidToken
from django.db import connection
from django.db.models import QuerySet, TextField
from django.db.models.functions import MD5, Cast

from memories import conf
from memories.models import (
    EndUser,
    Episode,
    Fact,
    FactRevision,
    PrivacyCase,
    ProfileRevision,
    ProfileSection,
    Role,
    Session,
    Turn,
    WorkingMemory,
)
from memories.privacy.searching import tables, windows
from memories.privacy.searching.belonging import Belonging
from memories.privacy.stores.keeping import called, models_asked

IDS_OF_A_TABLE = 3000
VECTORS_OF_A_TABLE = 200
ROWS_READ = 1000
TEXTS, WORDS = 500, 500
# Of these each says much in few words; what is left of TEXTS is for turns.
SHARE = 60
_REVISED = ("content", "raw", "value", "source_error")
# What erasing keeps on purpose, and gives nobody away.
_KEPT = (PrivacyCase._meta.db_table,)


@dataclass(frozen=True)
class Needles:
    """`ids`: UUIDs of the person's rows; `names`: the ids by which the application knows the person; `words`: other ids
    and values of the application that nobody else has; `texts`: windows of what was said; `vectors`: digests as hex;
    `cases`: the person's cases, whose words go when the case is closed. For the receipt: `models`
    that were asked, which it tells, and what the person was `called`, which it does not."""

    ids: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    vectors: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    called: tuple[str, ...] = ()


def collect(person: EndUser) -> bytes:
    """All of it as ciphertext, for PrivacyCase.needles; only opened() reads it again."""
    people = EndUser.objects.behind(person)
    mine = list(people.values_list("pk", flat=True))
    found = Needles(
        ids=tuple(_ids(mine)),
        names=tuple(people.values_list("external_id", flat=True)),
        words=tuple(_words(people)),
        texts=tuple(_texts(people)),
        vectors=tuple(_vectors(mine)),
        cases=tuple(str(pk) for pk in PrivacyCase.objects.filter(end_user__in=mine).values_list("pk", flat=True)),
        models=tuple(models_asked(person)),
        called=tuple(sorted(called(person))),
    )
    return _sealed(person.tenant_id, found)


def of_nobody(tenant_id: uuid.UUID) -> bytes:
    """Of a case whose person another one has erased, and looked for: there is nothing left to look for."""
    return _sealed(tenant_id, Needles())


def opened(case: PrivacyCase) -> Needles | None:
    """What collect() put away; None when there is nothing, or the pepper is another one."""
    try:
        said = _cipher(case.tenant_id).decrypt(bytes(case.needles))
    except InvalidToken:
        return None
    return Needles(**{name: tuple(values) for name, values in json.loads(zlib.decompress(said)).items()})


def _sealed(tenant_id: uuid.UUID, found: Needles) -> bytes:
    return _cipher(tenant_id).encrypt(zlib.compress(json.dumps(asdict(found)).encode()))


def _cipher(tenant_id: uuid.UUID) -> Fernet:
    return Fernet(base64.urlsafe_b64encode(conf.digest("needles", tenant_id.bytes)))


def _ids(people: list[uuid.UUID]) -> Iterator[str]:
    for table, condition in _tables_of_people():
        if table.name not in _KEPT:
            for column in table.columns:
                if column.primary and column.type == "uuid":
                    yield from _sample(table, column.sql, condition, people, IDS_OF_A_TABLE)


def _vectors(people: list[uuid.UUID]) -> Iterator[str]:
    for table, condition in _tables_of_people():
        for column in table.columns:
            if column.type in tables.VECTORS:
                yield from _sample(table, column.sql, condition, people, VECTORS_OF_A_TABLE)


def _tables_of_people() -> Iterator[tuple[tables.Table, str]]:
    belonging = Belonging()
    for table in tables.tables()[0]:
        condition = belonging.condition(table)
        if condition:
            yield table, condition


def _sample(table: tables.Table, value: str, condition: str, people: list[uuid.UUID], most: int) -> list[str]:
    """So many values at random, the same each time."""
    rows = f"{table.quoted} WHERE {condition} ORDER BY md5(({value})::text) LIMIT {most}"
    statement = f"SELECT ({value})::text FROM {rows}"  # noqa: S608 (the catalogue's names)
    with connection.cursor() as cursor:
        cursor.execute(statement, [people])
        return [found for (found,) in cursor.fetchall() if found]


def _words(people: QuerySet[EndUser]) -> Iterator[str]:
    """The application's ids and values, without those that other people have as well."""
    for person in people:
        yield from filter(is_telling, (person.display_name, *_leaves(person.metadata)))
    sessions = Session.objects.filter(end_user__in=people).values_list("external_id", flat=True)
    turns = Turn.objects.filter(end_user__in=people, external_id__isnull=False).values_list("external_id", flat=True)
    yield from _own(Session.objects.exclude(end_user__in=people), _some(sessions, WORDS))
    yield from _own(Turn.objects.exclude(end_user__in=people), [word for word in _some(turns, WORDS) if word])
    yield from _own_tags(people)


def is_telling(word: str) -> bool:
    """Whether it is somebody's own: "premium" and "Europe/Amsterdam" stand in settings and in our own codes, too."""
    return any(letter.isdigit() or letter.isspace() or letter == "@" or not letter.isascii() for letter in word)


def _own_tags(people: QuerySet[EndUser]) -> list[str]:
    rows = Fact.objects.values_list("tags", flat=True)
    tags = {tag for row in _some(rows.filter(end_user__in=people)) for tag in row}
    return sorted(
        tag
        for tag in tags.difference(*rows.exclude(end_user__in=people).filter(tags__overlap=sorted(tags)))
        if is_telling(tag)
    )


def _own(others: QuerySet[Any], words: list[str]) -> list[str]:
    shared = set(others.filter(external_id__in=words).values_list("external_id", flat=True))
    return [word for word in words if word not in shared]


def _texts(people: QuerySet[EndUser]) -> Iterator[str]:
    """Windows of all kinds of texts; not of system turns, which say the application's words to everybody."""
    by = {"end_user__in": people}
    facts = Fact.objects.filter(**by).values_list("content", "raw", "value", "source_error")
    revisions = FactRevision.objects.filter(fact__end_user__in=people).values_list("before", "after", "reason")
    yield from windows.sample([text for row in _some(facts) for text in row], SHARE)
    yield from windows.sample([text for row in _some(revisions) for text in _revised(row)], SHARE)
    for rows in (
        Episode.objects.filter(**by).values_list("summary", flat=True),
        ProfileSection.objects.filter(**by).values_list("summary", flat=True),
        ProfileRevision.objects.filter(**by).values_list("after", flat=True),
        WorkingMemory.objects.filter(session__end_user__in=people).values_list("summary", flat=True),
    ):
        yield from windows.sample(_some(rows), SHARE)
    turns = Turn.objects.filter(**by).exclude(role=Role.SYSTEM)
    yield from windows.sample(_some(turns.values_list("content", flat=True)), TEXTS - 6 * SHARE)
    calls = _some(turns.filter(tool_calls__isnull=False).values_list("tool_calls", flat=True), SHARE)
    yield from windows.sample([leaf for call in calls for leaf in _leaves(call)], SHARE)


def _some(rows: QuerySet[Any, Any], most: int = ROWS_READ) -> list[Any]:
    """All rows, or so many of them at random, the same each time."""
    return list(rows.order_by(MD5(Cast("pk", TextField())))[:most])


def _revised(row: tuple[dict[str, Any], dict[str, Any], str]) -> Iterator[str]:
    before, after, reason = row
    yield reason
    for state in (before, after):
        yield from (str(state[name]) for name in _REVISED if state.get(name))


def _leaves(value: object) -> Iterator[str]:
    """The texts of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        parts: Iterable[object] = value.values() if isinstance(value, dict) else value
        for part in parts:
            yield from _leaves(part)
