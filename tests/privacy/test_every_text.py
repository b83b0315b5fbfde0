"""Every column that can hold words of a person, by the database's catalogue: what is left of it is found, and who names
the person in it is counted. A column that came later is one of them without a word about it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connection

from memories.models import EndUser, GraphEntity
from memories.privacy import verification
from memories.privacy.searching import search_terms, tables, text_columns
from memories.privacy.searching.mentions import mentions_of
from memories.privacy.searching.ownership import Ownership
from memories.privacy.searching.tables import Column, SearchedTable
from memories.privacy.stores.waivers import WAIVERS
from tests import factories
from tests.privacy.erased_world import somebody
from tests.privacy.test_verification import run

pytestmark = pytest.mark.django_db
# A shorter column holds no window.
SHORTEST = 24
_LENGTHS = """
    SELECT table_name, column_name FROM information_schema.columns
    WHERE table_schema = 'public' AND character_maximum_length < %s
"""
_HELD = {"jsonb": "jsonb_build_object('a', jsonb_build_array(%(said)s::text))", "_varchar": "ARRAY[%(said)s]"}
_HELD |= {"_text": _HELD["_varchar"], "json": _HELD["jsonb"]}


@pytest.fixture(autouse=True)
def home(settings: LazySettings, tmp_path: Path) -> Path:
    settings.HOME = tmp_path
    return tmp_path


@pytest.fixture
def person(db: None) -> EndUser:
    return somebody(factories.tenant(), "zaphod@example.org")


def short_columns() -> set[tuple[str, str]]:
    with connection.cursor() as cursor:
        cursor.execute(_LENGTHS, [SHORTEST])
        return set(cursor.fetchall())


def columns_of_people() -> Iterator[tuple[SearchedTable, Column]]:
    """Those that can hold a window."""
    short, ownership = short_columns(), Ownership()
    for table in tables.tables()[0]:
        for column in text_columns.searched(table) if ownership.conditions(table) else ():
            if (table.name, column.name) not in short:
                yield table, column


def plant(table: SearchedTable, column: Column, said: str, people: list[object]) -> int:
    """Write it into one row of these people; how many rows."""
    any_of = " OR ".join(f"({condition})" for condition in Ownership().conditions(table))
    beside = text_columns.ROWS.get(table.label, ("TRUE", ""))[0]
    given: dict[str, Any] = {"people": people, "said": said}
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {table.quoted} SET {column.sql} = {_HELD.get(column.type, '%(said)s')} WHERE ctid = "
            f"(SELECT ctid FROM {table.quoted} WHERE ({any_of}) AND {beside} LIMIT 1)",
            given,
        )
        return int(cursor.rowcount)


def people_of(person: EndUser) -> list[object]:
    return list(EndUser.objects.with_aliases(person).values_list("pk", flat=True))


def left_over(texts: dict[str, str], person: EndUser) -> set[str]:
    """Which of these texts (name → text) the verification finds, each in a table that nobody registered."""
    case = factories.privacy_case(person, state="verifying", needles=search_terms.collect(person))
    for number, text in enumerate(texts.values()):
        run(f"CREATE TABLE left_{number} AS SELECT %s::text AS held", f"somebody wrote: {text}")
    hits = verification.verify(case).hits
    return {name for number, name in enumerate(texts) if f"public.left_{number}.held" in hits}


def test_a_leftover_of_every_kind_of_text_is_found(person: EndUser) -> None:
    """A kind of which `somebody` has no row fails here: make one there."""
    other = somebody(person.tenant, "ford@example.org")
    texts, of_others, unknown = dict[str, str](), dict[str, str](), list[str]()
    for number, (table, column) in enumerate(columns_of_people()):
        place = table.place(column.name)
        texts[place] = f"/otter {number:03} swims 水獭"
        if plant(table, column, texts[place], people_of(person)) != 1:
            unknown.append(place)
        of_others[f"others: {place}"] = f"/heron {number:03} wades 苍鹭"
        plant(table, column, of_others[f"others: {place}"], people_of(other))
    assert unknown == []
    assert {"memories.MemoryFile.content", "memories.FileVersion.content", "memories.DiaryEntry.content",
            "memories.GroupFact.content", "memories.GraphEntity.name", "memories.GraphTriple.predicate",
            "memories.StoreItem.value", "memories.Change.before", "memories.DreamEdit.new_text",
            } <= set(texts)  # fmt: skip
    assert left_over(texts | of_others, person) == set(texts)


def test_a_column_and_a_table_that_came_later_are_read(person: EndUser) -> None:
    run("SET CONSTRAINTS ALL IMMEDIATE")
    run("ALTER TABLE memories_fact ADD COLUMN later jsonb")
    run("UPDATE memories_fact SET later = %s WHERE end_user_id = %s", '{"a": ["keeps seven otters"]}', person.pk)
    run("CREATE TABLE poems (id uuid, end_user_id uuid REFERENCES memories_enduser (id), said text)")
    run("INSERT INTO poems VALUES (gen_random_uuid(), %s, 'Ode to an otter of Leiden')", person.pk)
    texts = {"column": "keeps seven otters", "table": "Ode to an otter of Leiden", "nobody's": "an ode that nobody has"}
    assert left_over(texts, person) == {"column", "table"}


def test_what_only_they_said_of_nobody_in_a_group_is_looked_for() -> None:
    person, other = (factories.end_user(owner) for owner in [factories.tenant()] * 2)
    group = factories.memory_group(person, other)
    alone = factories.group_fact(group, person, content="The oven of the bakery is broken")
    factories.group_fact(group, person, other, content="The bakery is closed on Mondays")
    texts = {"theirs": "The oven of the bakery is broken", "of both": "The bakery is closed on Mondays"}
    assert left_over(texts, person) == {"theirs"}
    terms = search_terms.opened(factories.privacy_case(person, needles=search_terms.collect(person)))
    assert terms
    assert str(alone.pk) in terms.ids


CODES = {
    "a model": "gpt-4o-mini-2024-07-18",
    "a choice": "preferences_and_habits",
    "a path": "/memories/user_preferences.md",
    "a moment": "2026-11-28T10:00:00.123456+00:00",
    "a digest": "9f86d081884c7d659a2feaa0c55ad015",
    "somebody else's id": "01a221a9-64f8-703f-9cd8-0e4f3546c713",
    "a zone": "America/Argentina/Buenos_Aires",
    "a short text": "New York",
}


def test_codes_ids_and_short_texts_are_no_search_terms(person: EndUser) -> None:
    """Settings and rows of nobody have them, too, and the erasure would never be through."""
    session = person.sessions.get()
    session.turns.update(metadata={"client": list(CODES.values()), "said": "a note of the client"})
    person.facts.update(structured={"of": list(CODES.values())})
    GraphEntity.objects.filter(end_user=person).update(type=CODES["a choice"])
    factories.memory_file(person, CODES["a path"])
    EndUser.objects.filter(pk=person.pk).update(time_zone=CODES["a zone"])
    assert left_over(CODES | {"control": "a note of the client"}, person) == {"control"}


def test_what_living_people_have_too_is_theirs(person: EndUser) -> None:
    for one in (person, factories.end_user(person.tenant)):
        factories.session(one, session_id=f"of {one.pk}").turns.update(metadata={"page": "Help page of the bakery"})
    assert left_over({"shared": "Help page of the bakery"}, person) == set()


def test_terms_are_bounded(person: EndUser) -> None:
    long = " ".join(f"line {number} of a long file" for number in range(20_000))
    for number in range(300):
        factories.memory_file(person, f"/memories/{number}.md", f"{number} {long[:3000]}")
    factories.memory_file(person, "/memories/long.md", long)
    terms = search_terms.opened(factories.privacy_case(person, needles=search_terms.collect(person)))
    assert terms
    assert 100 < len(terms.texts) < 2 * search_terms.TEXTS + 200


def test_every_exception_exists_and_says_why() -> None:
    found = {table.label: table for table in tables.tables()[0]}
    for place, reason in text_columns.UNSEARCHED.items():
        label = place if place in found else place.rpartition(".")[0]
        assert label in found, place
        assert len(reason) > 20, place
        assert place == label or place in {found[label].place(one.name) for one in found[label].columns}
    for label, (_condition, reason) in text_columns.ROWS.items():
        assert label in found
        assert len(reason) > 20
    assert all(len(reason) > 20 for reason in text_columns.UNSEARCHED_NAMES.values())
    assert all(waiver.reason for waiver in WAIVERS)


def test_whoever_names_the_person_is_counted_in_every_column(person: EndUser) -> None:
    friend = somebody(person.tenant, "ford@example.org")
    assert mentions_of(person) == {}
    short, ownership, expected = short_columns(), Ownership(), set[str]()
    for table in tables.tables()[0]:
        for column in text_columns.of_words(table) if ownership.conditions(table) else ():
            place = table.place(column.name)
            if (table.name, column.name) not in short and any(one.name == "tenant_id" for one in table.columns):
                assert plant(table, column, f"/{person.external_id}", people_of(friend)), place
                expected.add(place)
    factories.memory_group(friend, name=f"Friends of {person.external_id}")
    assert set(mentions_of(person)) == expected | {"memories.MemoryGroup.name"}
    assert len({place.rpartition(".")[0] for place in expected}) >= 24
