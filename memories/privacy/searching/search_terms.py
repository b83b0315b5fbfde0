"""The search terms of a verification: collected before the first row goes, and kept encrypted in the case."""

import base64
import json
import re
import uuid
import zlib
from collections.abc import Iterable, Iterator, Sequence
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
from memories.privacy.searching import tables
from memories.privacy.searching.ownership import Ownership
from memories.privacy.searching.tables import SearchedTable
from memories.privacy.stores.store import models_used, names_of

IDS_OF_A_TABLE = 3000
VECTORS_OF_A_TABLE = 200
ROWS_READ = 1000
TEXTS, WORDS = 500, 500
# Windows of each kind of text that says much in few words; what is left of TEXTS is for turns.
SHARE = 60
# Lengths of a window, in letters; a Chinese character says as much as two.
SHORTEST, LONGEST = 16, 48
_WIDE = 0x2E80
# JSON and COPY write these differently from what was said.
_BREAKS = re.compile(r'[\x00-\x1f\x7f-\x9f"\\]+')
_REVISED = ("content", "raw", "value", "source_error")
# An erasure keeps these rows on purpose, and they identify nobody.
_KEPT = (PrivacyCase._meta.db_table,)


@dataclass(frozen=True)
class SearchTerms:
    """`ids`: UUIDs of the person's rows; `names`: their external ids; `words`: other ids and values of the application
    that nobody else has; `texts`: windows of what was said; `vectors`: digests as hex; `cases`: the person's cases,
    whose texts go when the case is closed. For the receipt: `models` that received texts, which it names, and what the
    person was `called`, which it does not."""

    ids: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    vectors: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    called: tuple[str, ...] = ()


def collect(person: EndUser) -> bytes:
    """The terms of a person as ciphertext, for PrivacyCase.needles; only opened() can read it."""
    people = EndUser.objects.behind(person)
    mine = list(people.values_list("pk", flat=True))
    terms = SearchTerms(
        ids=tuple(_ids(mine)),
        names=tuple(people.values_list("external_id", flat=True)),
        words=tuple(_words(people)),
        texts=tuple(_texts(people)),
        vectors=tuple(_vectors(mine)),
        cases=tuple(str(pk) for pk in PrivacyCase.objects.filter(end_user__in=mine).values_list("pk", flat=True)),
        models=tuple(models_used(person)),
        called=tuple(sorted(names_of(person))),
    )
    return _sealed(person.tenant_id, terms)


def of_nobody(tenant_id: uuid.UUID) -> bytes:
    """For a case whose person another case has erased and searched for: there is nothing left to look for."""
    return _sealed(tenant_id, SearchTerms())


def opened(case: PrivacyCase) -> SearchTerms | None:
    """The terms of the case; None when it has none, or the pepper has changed."""
    try:
        content = _cipher(case.tenant_id).decrypt(bytes(case.needles))
    except InvalidToken:
        return None
    return SearchTerms(**{name: tuple(values) for name, values in json.loads(zlib.decompress(content)).items()})


def _sealed(tenant_id: uuid.UUID, terms: SearchTerms) -> bytes:
    return _cipher(tenant_id).encrypt(zlib.compress(json.dumps(asdict(terms)).encode()))


def _cipher(tenant_id: uuid.UUID) -> Fernet:
    return Fernet(base64.urlsafe_b64encode(conf.digest("needles", tenant_id.bytes)))


def _ids(people: list[uuid.UUID]) -> Iterator[str]:
    for table, condition in _tables_of_people():
        if table.name not in _KEPT:
            for column in table.columns:
                # On several nodes a primary key names the tenant, too.
                if column.primary and column.type == "uuid" and column.name != "tenant_id":
                    yield from _sample_column(table, column.sql, condition, people, IDS_OF_A_TABLE)


def _vectors(people: list[uuid.UUID]) -> Iterator[str]:
    for table, condition in _tables_of_people():
        for column in table.columns:
            if column.type in tables.VECTORS:
                yield from _sample_column(table, column.sql, condition, people, VECTORS_OF_A_TABLE)


def _tables_of_people() -> Iterator[tuple[SearchedTable, str]]:
    ownership = Ownership()
    for table in tables.tables()[0]:
        condition = ownership.condition(table)
        if condition:
            yield table, condition


def _sample_column(table: SearchedTable, value: str, condition: str, people: list[uuid.UUID], most: int) -> list[str]:
    """At most so many values, at random but always the same."""
    rows = f"{table.quoted} WHERE {condition} ORDER BY md5(({value})::text) LIMIT {most}"
    statement = f"SELECT ({value})::text FROM {rows}"  # noqa: S608 (the catalogue's names)
    with connection.cursor() as cursor:
        cursor.execute(statement, [people])
        return [found for (found,) in cursor.fetchall() if found]


def _words(people: QuerySet[EndUser]) -> Iterator[str]:
    """The application's ids and values, without those that other people have as well."""
    for person in people:
        yield from filter(is_distinctive, (person.display_name, *_leaves(person.metadata)))
    sessions = Session.objects.filter(end_user__in=people).values_list("external_id", flat=True)
    turns = Turn.objects.filter(end_user__in=people, external_id__isnull=False).values_list("external_id", flat=True)
    yield from _unshared(Session.objects.exclude(end_user__in=people), _sample_rows(sessions, WORDS))
    yield from _unshared(
        Turn.objects.exclude(end_user__in=people), [word for word in _sample_rows(turns, WORDS) if word]
    )
    rows = Fact.objects.values_list("tags", flat=True)
    tags = {tag for row in _sample_rows(rows.filter(end_user__in=people)) for tag in row}
    shared = rows.exclude(end_user__in=people).filter(tags__overlap=sorted(tags))
    yield from sorted(filter(is_distinctive, tags.difference(*shared)))


def is_distinctive(word: str) -> bool:
    """Whether a word can be somebody's own: "premium" stands in settings and in our own codes, too."""
    return any(letter.isdigit() or letter.isspace() or letter == "@" or not letter.isascii() for letter in word)


def _unshared(others: QuerySet[Any], words: list[str]) -> list[str]:
    shared = set(others.filter(external_id__in=words).values_list("external_id", flat=True))
    return [word for word in words if word not in shared]


def _texts(people: QuerySet[EndUser]) -> Iterator[str]:
    """Windows of all kinds of texts; not of system turns, which say the application's words to everybody."""
    by = {"end_user__in": people}
    facts = Fact.objects.filter(**by).values_list("content", "raw", "value", "source_error")
    revisions = FactRevision.objects.filter(fact__end_user__in=people).values_list("before", "after", "reason")
    yield from sample([text for row in _sample_rows(facts) for text in row], SHARE)
    yield from sample([text for row in _sample_rows(revisions) for text in _revised_texts(row)], SHARE)
    for rows in (
        Episode.objects.filter(**by).values_list("summary", flat=True),
        ProfileSection.objects.filter(**by).values_list("summary", flat=True),
        ProfileRevision.objects.filter(**by).values_list("after", flat=True),
        WorkingMemory.objects.filter(session__end_user__in=people).values_list("summary", flat=True),
    ):
        yield from sample(_sample_rows(rows), SHARE)
    turns = Turn.objects.filter(**by).exclude(role=Role.SYSTEM)
    yield from sample(_sample_rows(turns.values_list("content", flat=True)), TEXTS - 6 * SHARE)
    calls = _sample_rows(turns.filter(tool_calls__isnull=False).values_list("tool_calls", flat=True), SHARE)
    yield from sample([leaf for call in calls for leaf in _leaves(call)], SHARE)


def _sample_rows(rows: QuerySet[Any, Any], most: int = ROWS_READ) -> list[Any]:
    """At most so many rows, at random but always the same."""
    return list(rows.order_by(MD5(Cast("pk", TextField())))[:most])


def _revised_texts(row: tuple[dict[str, Any], dict[str, Any], str]) -> Iterator[str]:
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


def sample(texts: Sequence[str], most: int) -> list[str]:
    """Windows of the texts: all when there are few, else the most distinctive of texts at even distances."""
    by_text = [found for found in map(windows, dict.fromkeys(texts)) if found]
    if sum(map(len, by_text)) <= most:
        return [window for found in by_text for window in found]
    step = max(1, len(by_text) / most)
    chosen = [by_text[int(place * step)] for place in range(min(most, len(by_text)))]
    return [window for found in chosen for window in found[: most // len(chosen)]]


def windows(text: str) -> list[str]:
    """The whole text in parts of at most LONGEST, those with most different pairs of letters first.

    A window is long enough to be somebody's own, and short enough to survive a cut.
    """
    found = [window for segment in _BREAKS.split(text) for window in _cut(segment.strip())]
    return sorted(found, key=lambda window: len({window[at : at + 2] for at in range(len(window) - 1)}), reverse=True)


def _cut(segment: str) -> Iterator[str]:
    """Parts of LONGEST; the last one reaches back into the one before it, so that none is too short."""
    rest = weight(segment)
    while rest >= SHORTEST:
        size = _letters_of_a_window(segment)
        yield segment[:size].strip()
        segment, before = segment[size:], segment
        rest = weight(segment)
        if 0 < rest < SHORTEST:
            yield before[-_letters_of_a_window(before[::-1]) :].strip()


def weight(text: str) -> int:
    return sum(2 if ord(letter) >= _WIDE else 1 for letter in text)


def _letters_of_a_window(segment: str) -> int:
    total = 0
    for count, letter in enumerate(segment):
        total += weight(letter)
        if total > LONGEST:
            return count
    return len(segment)
