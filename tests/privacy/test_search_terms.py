"""What the verification looks for is taken while it is there, and only the verification reads it."""

import uuid
from typing import Any

import pytest
from django.db import connection

from memories.models import EndUser
from memories.privacy.searching import search_terms
from memories.privacy.searching.search_terms import SearchTerms
from tests import factories

pytestmark = pytest.mark.django_db
ENGLISH = "I moved to Leiden in March and I work at the harbour as a pilot"
CHINESE = "我三月份搬到了杭州，现在在港口当引航员，每天早上六点出门"


@pytest.fixture
def person(db: None) -> EndUser:
    return factories.end_user(external_id="anna@example.org", display_name="Anna Berg", metadata={"a": ["CRM-1", {}]})


def taken(person: EndUser) -> SearchTerms:
    found = search_terms.opened(factories.privacy_case(person, needles=search_terms.collect(person)))
    assert found
    return found


def test_all_that_names_the_person_is_taken(person: EndUser) -> None:
    name = factories.end_user(person.tenant, external_id="a.berg", merged_into=person)
    session = factories.session(person, [("user", ENGLISH), ("assistant", CHINESE)], session_id="s-77")
    fact = factories.fact(person, "Works as a pilot in the harbour", tags=["harbour pilot"])
    episode = factories.episode(session)
    run = factories.run(session)
    item = factories.review_item(fact)
    section = factories.profile_section(person)
    found = taken(person)
    rows = [person, name, session, *session.turns.all(), fact, episode, run, item, section]
    assert {str(row.pk) for row in rows} <= set(found.ids)
    assert set(found.names) == {"anna@example.org", "a.berg"}
    assert {"Anna Berg", "CRM-1", "s-77", "harbour pilot"} <= set(found.words)
    for text in (ENGLISH, CHINESE, "Works as a pilot in the harbour"):
        assert any(window in text for window in found.texts), text


def test_ordinary_words_are_no_search_terms(person: EndUser) -> None:
    metadata = {"plan": "knowledge", "zone": "Europe/Amsterdam", "seat": "34-B", "家": "杭州市区"}
    EndUser.objects.filter(pk=person.pk).update(metadata=metadata)
    factories.fact(person, tags=["knowledge", "harbour pilot"])
    assert set(taken(person).words) == {"Anna Berg", "34-B", "杭州市区", "harbour pilot"}


def test_nobody_elses(person: EndUser) -> None:
    other = factories.end_user(person.tenant)
    for someone in (person, other):
        factories.session(someone, [("user", ENGLISH)], session_id="default")
        factories.fact(someone, tags=["work"])
    found = taken(person)
    assert not {"default", "work", other.external_id} & {*found.words, *found.names}
    assert not {str(row.pk) for row in (other, *other.turns.all(), *other.facts.all())} & set(found.ids)
    assert str(person.tenant_id) not in found.ids


def test_the_case_is_no_needle_of_its_own(person: EndUser) -> None:
    case = factories.privacy_case(person)
    found = taken(person)
    assert str(case.pk) not in found.ids
    assert str(case.pk) in found.cases


def test_it_is_put_away_as_ciphertext(person: EndUser) -> None:
    factories.session(person, [("user", ENGLISH)])
    sealed = search_terms.collect(person)
    for text in (b"anna@example.org", b"Leiden", person.pk.bytes, str(person.pk).encode()):
        assert text not in sealed


def test_only_the_pepper_and_the_tenant_open_it(person: EndUser, settings: object) -> None:
    other = factories.end_user()
    assert search_terms.opened(factories.privacy_case(other, needles=search_terms.collect(person))) is None
    assert search_terms.opened(factories.privacy_case(other, needles=b"")) is None


def test_of_many_there_is_a_sample(person: EndUser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_terms, "IDS_OF_A_TABLE", 5)
    factories.session(person, [("user", f"{ENGLISH} number {uuid.uuid4()}") for _ in range(30)])
    found = taken(person)
    assert len(set(found.ids) & {str(pk) for pk in person.turns.values_list("pk", flat=True)}) == 5
    assert 60 <= len(found.texts) <= 90


def test_what_the_application_says_to_everybody_is_no_needle(person: EndUser) -> None:
    factories.session(person, [("system", "You are the assistant of a harbour office."), ("user", ENGLISH)])
    assert not any("harbour office" in text for text in taken(person).texts)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("too short", []),
        ("我住在杭州", []),
        ("我三月份搬到了杭州", ["我三月份搬到了杭州"]),
        (ENGLISH[:40], [ENGLISH[:40]]),
        (f"{ENGLISH[:20]}\n{ENGLISH[20:40]}", [ENGLISH[:20], ENGLISH[20:40].strip()]),
        ('say "hello there you two" \\ now', ["hello there you two"]),
    ],
)
def test_windows_are_what_every_way_of_writing_leaves_alone(text: str, found: list[str]) -> None:
    assert sorted(search_terms.windows(text)) == sorted(found)


@pytest.mark.parametrize("text", [ENGLISH * 9, CHINESE * 9, "a" * 49, "ab" * 24 + "c"])
def test_windows_cover_the_whole_text(text: str) -> None:
    found = search_terms.windows(text)
    assert all(search_terms.SHORTEST - 1 <= search_terms.weight(window) <= search_terms.LONGEST for window in found)
    covered = set()
    for window in found:
        start = text.find(window)
        while start >= 0:
            covered |= set(range(start, start + len(window)))
            start = text.find(window, start + 1)
    assert all(place in covered or text[place].isspace() for place in range(len(text)))


def test_a_sample_is_spread_evenly_and_bounded() -> None:
    texts = [f"{ENGLISH} {number:05}" for number in range(5000)]
    found = search_terms.sample(texts, 500)
    assert 400 <= len(found) <= 500
    assert len(search_terms.sample(texts[:10], 500)) == 20


def test_tags_that_others_have_are_told_by_the_database(person: EndUser) -> None:
    """However many facts of others have one: a row for each tag comes back, and none without tags."""
    factories.fact(person, tags=["harbour pilot", "row 7", "work"])
    for number in range(3):
        factories.fact(factories.end_user(person.tenant), f"Rows on day {number}", tags=["row 7", f"day {number}"])
    rows: list[int] = []

    def note(execute: Any, statement: str, *rest: Any) -> Any:
        found = execute(statement, *rest)
        if "unnest(tags)" in statement:
            rows.append(rest[-1]["cursor"].rowcount)
        return found

    with connection.execute_wrapper(note):
        found = taken(person)
    assert "harbour pilot" in found.words
    assert not {"row 7", "day 1", "work"} & set(found.words)
    assert rows == [1]
