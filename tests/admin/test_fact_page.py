"""The page of a fact: content, weight, evidence with the quote marked, revisions with diffs."""

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from memories.audit import Actor
from memories.curation.facts.editing import correct_fact
from memories.models import EndUser, Fact, Operator
from tests import factories
from tests.admin.pages import page_of, text_of

TURNS = [
    ("user", "你好"),
    ("assistant", "您好，请问有什么可以帮您？"),
    ("user", "Actually the doctor said it is penicillin, not peanuts, that I react to."),
    ("assistant", "Noted."),
]


@pytest.fixture
def person(db: None) -> EndUser:
    return factories.end_user(display_name="Katherine Ruiz")


@pytest.fixture
def fact(person: EndUser) -> Fact:
    session = factories.session(person, TURNS)
    fact = factories.fact(person, "Allergic to penicillin", category="preference", extraction=factories.run(session))
    factories.evidence(fact, session.turns.get(number=3), "penicillin, not peanuts")
    return fact


def correct(fact: Fact, operator: Operator, content: str, *, reason: str = "again") -> None:
    actor = Actor.operator(operator)
    correct_fact(fact_id=fact.pk, tenant=None, content=content, reason=reason, actor=actor, now=timezone.now())


def test_it_shows_what_and_whose_and_how_sure(admin: Client, fact: Fact) -> None:
    page = text_of(admin.get(page_of(fact)))
    for shown in ("Allergic to penicillin", "Katherine Ruiz", "90 %", "50 %", "Preference", "User trust", "llm:test"):
        assert shown in page
    assert page_of(fact.end_user) in page
    assert fact.extraction
    assert page_of(fact.extraction) in page


def test_the_quote_is_marked_in_its_turn_and_the_neighbours_are_folded(admin: Client, fact: Fact) -> None:
    page = text_of(admin.get(page_of(fact)))
    assert "said it is <mark>penicillin, not peanuts</mark>, that I react to." in page
    before, after = page.index("The turn before"), page.index("The turn after")
    assert before < page.index("您好，请问有什么可以帮您？") < page.index("<mark>") < after < page.index("Noted.")


def test_a_turn_has_the_time_at_which_it_was_sent(admin: Client, fact: Fact) -> None:
    session = fact.evidence.get().session
    session.turns.update(timestamp=datetime(2021, 3, 4, 5, 6, tzinfo=UTC))
    for page in (page_of(fact), page_of(session)):
        assert "2021-03-04" in text_of(admin.get(page))


def test_it_links_to_the_turn_in_its_session(admin: Client, fact: Fact) -> None:
    session = fact.evidence.get().session
    assert f"{page_of(session)}?page=1#turn-3" in text_of(admin.get(page_of(fact)))


def test_it_says_when_the_fact_fades(admin: Client, person: EndUser) -> None:
    now = timezone.now()
    fading = factories.fact(person, "Fades", category="goal", importance=0.8, now=now)
    # rules.md, 7.1: 30 days, then 90 days × log2(0.8 / 0.2) = 180 days.
    day = now + timedelta(days=210)
    assert f"{day.day} {day:%b %Y}" in text_of(admin.get(page_of(fading)))


def test_it_says_why_a_fact_never_fades(admin: Client, person: EndUser) -> None:
    for over, because in (
        ({"category": "identity"}, "identity facts do not fade"),
        ({"category": "goal", "pinned": True}, "it is pinned"),
        ({"category": "goal", "binding": True}, "an operator confirmed it"),
    ):
        fact = factories.fact(person, f"Kept: {because}", **over)
        assert f"Never fades: {because}." in text_of(admin.get(page_of(fact)))


def test_a_fact_without_evidence_says_who_wrote_it(admin: Client, person: EndUser) -> None:
    stated = factories.fact(person, extractor="api", raw="I live in Leiden")
    page = text_of(admin.get(page_of(stated)))
    assert "No turn is cited" in page
    assert "I live in Leiden" in page


def test_revisions_are_shown_newest_first_with_a_diff(admin: Client, administrator: Operator, fact: Fact) -> None:
    correct(fact, administrator, "Allergic to peanuts", reason="Letter")
    correct(fact, administrator, "对花生过敏")
    correct(fact, administrator, "对青霉素过敏")
    page = text_of(admin.get(page_of(fact)))
    assert "对<del>花生</del><ins>青霉素</ins>过敏" in page
    assert page.index("4 · Correct") < page.index("3 · Correct") < page.index("2 · Correct")
    assert administrator.username in page
    assert "Reason: Letter" in page


def test_the_page_itself_takes_no_changes(admin: Client, fact: Fact) -> None:
    assert admin.post(page_of(fact), {"content": "Rewritten"}).status_code == 405
    fact.refresh_from_db()
    assert fact.content == "Allergic to penicillin"


def test_a_held_fact_says_so(admin: Client, person: EndUser, fact: Fact) -> None:
    held = factories.fact(person, "Might like tea", status="pending", flags=["instruction"])
    page = text_of(admin.get(page_of(held)))
    assert "Held: it is not served" in page
    assert "instruction" in page
    assert "Held: it is not served" not in text_of(admin.get(page_of(fact)))
