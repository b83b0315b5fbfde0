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
from memories.models import EndUser, Fact, PrivacyCase, Session, Turn
from memories.privacy.searching import tables, text_columns
from memories.privacy.searching.ownership import Ownership
from memories.privacy.searching.tables import SearchedTable
from memories.privacy.stores.store import models_used, names_of

IDS_OF_A_TABLE = 3000
VECTORS_OF_A_TABLE = 200
ROWS_READ = 1000
WORDS = 500
# Windows of each column: of texts, and of values that are not long.
TEXTS, VALUES = 140, 60
# Lengths of a window, in letters; a Chinese character says as much as two.
SHORTEST, LONGEST = 16, 48
_WIDE = 0x2E80
# JSON and COPY write these differently from what was said.
_BREAKS = re.compile(r'[\x00-\x1f\x7f-\x9f"\\]+')
# An erasure keeps these rows on purpose, and they identify nobody.
_KEPT = (PrivacyCase._meta.db_table,)
_OF_OTHERS = """
    SELECT DISTINCT tag FROM memories_fact, unnest(tags) tag
    WHERE tags && %(tags)s::varchar[] AND tag = ANY(%(tags)s) AND end_user_id <> ALL(%(people)s)
"""
# A table, and the conditions for the rows of people in it.
_OfPeople = tuple[SearchedTable, list[str]]


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
    people = EndUser.objects.with_aliases(person)
    mine = list(people.values_list("pk", flat=True))
    names = tuple(people.values_list("external_id", flat=True))
    of_people = list(_tables_of_people())
    texts, values = _texts(of_people, mine)
    terms = SearchTerms(
        ids=tuple(_ids(of_people, mine)),
        names=names,
        words=tuple(dict.fromkeys([*_words(people), *(one for one in values if one not in names)])),
        texts=tuple(texts),
        vectors=tuple(_vectors(of_people, mine)),
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


def _ids(of_people: Sequence[_OfPeople], people: list[uuid.UUID]) -> Iterator[str]:
    for table, conditions in of_people:
        if table.name not in _KEPT:
            for column in table.columns:
                # On several nodes a primary key names the tenant, too.
                if column.primary and column.type == "uuid" and column.name != "tenant_id":
                    yield from _sample_column(table, column.sql, conditions, people, IDS_OF_A_TABLE)


def _vectors(of_people: Sequence[_OfPeople], people: list[uuid.UUID]) -> Iterator[str]:
    for table, conditions in of_people:
        for column in table.columns:
            if column.type in tables.VECTORS:
                yield from _sample_column(table, column.sql, conditions, people, VECTORS_OF_A_TABLE)


def _tables_of_people() -> Iterator[_OfPeople]:
    ownership = Ownership()
    for table in tables.tables()[0]:
        conditions = ownership.conditions(table)
        if conditions:
            yield table, conditions


def _sample_column(
    table: SearchedTable, value: str, conditions: list[str], people: list[uuid.UUID], most: int
) -> Iterator[str]:
    """At most so many values for each condition, at random but always the same."""
    as_text = f"({value})::text"
    for condition in conditions:
        # By the key of the row: the digests of all vectors of a person would take minutes.
        rows = _rows_of(table, [as_text], condition=condition, people=people, most=most)
        yield from (found for (found,) in rows if found)


def _rows_of(
    table: SearchedTable, values: list[str], *, condition: str, people: list[uuid.UUID], most: int
) -> list[Any]:
    """These values of at most so many rows, at random but always the same."""
    keys = [f"({column.sql})::text" for column in table.columns if column.primary]
    order = " || ".join(keys) or "ctid::text"
    # Chosen first: PostgreSQL would take the digest of each vector and sort them.
    chosen = f"SELECT * FROM {table.quoted} WHERE {condition} ORDER BY md5({order}) LIMIT {most}"  # noqa: S608 (the catalogue's names)
    statement = f"SELECT {', '.join(values)} FROM ({chosen}) chosen"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(statement, {"people": people})
        return list(cursor.fetchall())


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
    tagged = Fact.objects.filter(end_user__in=people).values_list("tags", flat=True)
    tags = {tag for row in _sample_rows(tagged) for tag in row if is_distinctive(tag)}
    yield from sorted(tags - _tags_of_others(tags, people))


def _tags_of_others(tags: set[str], people: QuerySet[EndUser]) -> set[str]:
    """Those that others have: the database answers with these alone, for many facts may have one."""
    if not tags:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(_OF_OTHERS, {"tags": sorted(tags), "people": list(people.values_list("pk", flat=True))})
        return {tag for (tag,) in cursor.fetchall()}


def is_distinctive(word: str) -> bool:
    """Whether a word can be somebody's own: "premium" stands in settings and in our own codes, too."""
    return any(letter.isdigit() or letter.isspace() or letter == "@" or not letter.isascii() for letter in word)


def _unshared(others: QuerySet[Any], words: list[str]) -> list[str]:
    shared = set(others.filter(external_id__in=words).values_list("external_id", flat=True))
    return [word for word in words if word not in shared]


def _texts(of_people: Sequence[_OfPeople], people: list[uuid.UUID]) -> tuple[list[str], list[str]]:
    """Windows of what columns of texts say, and those of all other values; each once."""
    found: dict[bool, dict[str, None]] = {True: {}, False: {}}
    for table, conditions in of_people:
        columns = text_columns.searched(table)
        starts = [text_columns.start(column) for column in columns]
        read: dict[str, list[str]] = {column.name: [] for column in columns}
        own = text_columns.ROWS.get(table.label, ("TRUE", ""))[0]
        for condition in [f"({one}) AND ({own})" for one in conditions] if columns else ():
            for row in _rows_of(table, starts, condition=condition, people=people, most=ROWS_READ):
                for column, value in zip(columns, row, strict=True):
                    read[column.name] += text_columns.strings(value or "")
        for column in columns:
            is_prose = column.type == text_columns.PROSE
            values = [one for one in read[column.name] if is_prose or text_columns.says_something(one)]
            found[is_prose] |= dict.fromkeys(sample(values, TEXTS if is_prose else VALUES))
    return list(found[True]), [one for one in found[False] if one not in found[True]]


def _sample_rows(rows: QuerySet[Any, Any], most: int = ROWS_READ) -> list[Any]:
    """At most so many rows, at random but always the same."""
    return list(rows.order_by(MD5(Cast("pk", TextField())))[:most])


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
    long = [text for text in dict.fromkeys(texts) if not _is_short(text)]
    # Of many texts not all are cut.
    distance = max(1, len(long) / most)
    by_text = [found for at in range(min(most, len(long))) if (found := windows(long[int(at * distance)]))]
    if sum(map(len, by_text)) <= most:
        return [window for found in by_text for window in found]
    return [window for found in by_text for window in found[: most // len(by_text)]]


def windows(text: str) -> list[str]:
    """The whole text in parts of at most LONGEST, those with most different pairs of letters first.

    A window is long enough to be somebody's own, and short enough to survive a cut.
    """
    found = [window for segment in _BREAKS.split(text) for window in _cut(segment.strip())]
    return sorted(found, key=lambda window: len({window[at : at + 2] for at in range(len(window) - 1)}), reverse=True)


def _cut(segment: str) -> Iterator[str]:
    """Parts of LONGEST; the last one reaches back into the one before it, so that none is too short."""
    while not _is_short(segment):
        size = _letters_of_a_window(segment)
        yield segment[:size].strip()
        segment, before = segment[size:], segment
        if segment and _is_short(segment):
            yield before[-_letters_of_a_window(before[::-1]) :].strip()


def _is_short(text: str) -> bool:
    # A letter weighs one at least: the rest of a long text need not be weighed.
    return weight(text[:SHORTEST]) < SHORTEST


def weight(text: str) -> int:
    return sum(2 if ord(letter) >= _WIDE else 1 for letter in text)


def _letters_of_a_window(segment: str) -> int:
    total = 0
    for count, letter in enumerate(segment):
        total += weight(letter)
        if total > LONGEST:
            return count
    return len(segment)
