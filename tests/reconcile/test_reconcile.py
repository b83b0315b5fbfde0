"""Reconciliation: new facts, the same text, the profile; through whole attempts."""

from datetime import timedelta
from typing import Any

import pytest

from memories import conf
from memories.curation.facts.adding import FactDraft, add_fact
from memories.models import EndUser, FactEvidence, ProfileSection
from memories.scoring import decay
from tests import factories
from tests.factories import COMMAND, NOW
from tests.model import Model, candidate
from tests.reconcile.reconciling import CITY, LATER, SAID, Extractor, only, state


def test_fact_is_stored_with_its_source(extract: Extractor, person: EndUser) -> None:
    run = extract(
        candidate(evidence=[1], quote="live in Leiden", importance=0.8, tags=["home"], **CITY, value="Leiden")
    )
    fact = only(person)
    assert run.outcome == {"stored": 1}
    assert (fact.status, fact.trust, fact.source, fact.agent_id) == ("active", "user", "explicit_user_input", "")
    assert (fact.extractor, fact.prompt_version, fact.extraction) == ("llm:test", run.prompt_version, run)
    assert (fact.confidence, fact.stated_confidence, fact.importance, fact.mentions, fact.version) == (
        0.9,
        0.9,
        0.8,
        1,
        1,
    )
    assert (fact.category, fact.key, fact.value, fact.tags, fact.raw) == (
        "identity", "home_city", "Leiden", ["home"], "live in Leiden",
    )  # fmt: skip
    evidence = FactEvidence.objects.get()
    assert (evidence.fact, evidence.turn_number, evidence.quote) == (fact, 1, "live in Leiden")
    assert evidence.turn
    assert (evidence.session, evidence.turn.content) == (run.session, SAID[0][1])
    revision = fact.revisions.get()
    assert (revision.version, revision.verb, revision.actor_kind, revision.actor_id) == (
        1,
        "extract",
        "run",
        str(run.pk),
    )
    assert revision.after["content"] == "Lives in Leiden"


def test_quote_is_kept_with_the_turn_that_says_it(extract: Extractor) -> None:
    extract(candidate("Lives in Leiden, lived in Hangzhou", evidence=[1, 4], quote="我住在杭州"))
    assert list(FactEvidence.objects.values_list("turn_number", "quote")) == [(1, ""), (4, "我住在杭州")]


@pytest.mark.parametrize("category", ["knowledge", "constraint"])
def test_forgetting_is_set_at_once(extract: Extractor, person: EndUser, category: str) -> None:
    extract(candidate(category=category, importance=0.8))
    fact = only(person)
    assert fact.decay_score == 0.8
    rules = conf.hub_rules()
    memory = decay.DecayInput(0.8, fact.last_confirmed_at, 1, category)
    assert fact.forget_at == decay.forget_at(memory, rules, below=rules.forget_below)
    assert (fact.forget_at is None) == (category == "constraint")


def test_temporary_fact_expires(extract: Extractor, person: EndUser) -> None:
    extract(candidate(durability="temporary", expires_in_days=7))
    assert only(person).expires_at == only(person).last_confirmed_at + timedelta(days=7)


def test_bad_items_lose_no_good_ones(extract: Extractor, person: EndUser) -> None:
    bad = [
        candidate(confidence=0.1),
        candidate(content=""),
        None,
        candidate("Uploaded a file"),
        candidate(about="task"),
    ]
    run = extract(*bad, candidate("Drinks tea"), *bad)
    assert run.refusals == {"low_confidence": 2, "no_content": 2, "malformed": 2, "upload": 2, "not_about_user": 2}
    assert only(person).content == "Drinks tea"


@pytest.mark.parametrize("text", ["Lives in Leiden", "lives  in LEIDEN ", "Ｌｉｖｅｓ in Leiden"])
def test_same_text_reinforces(extract: Extractor, person: EndUser, text: str) -> None:
    extract(candidate(quote="live in Leiden"))
    run = extract(candidate(text, confidence=0.95), now=LATER)
    fact = only(person)
    assert run.outcome == {"reinforced": 1}
    assert fact.content == "Lives in Leiden"
    assert fact.confidence == pytest.approx(0.95)
    assert fact.stated_confidence == 0.9
    assert (fact.mentions, fact.version) == (2, 2)
    assert LATER <= fact.last_confirmed_at < LATER + timedelta(minutes=1)
    rules = conf.hub_rules()
    memory = decay.DecayInput(0.5, fact.last_confirmed_at, 2, "knowledge")
    assert fact.forget_at == decay.forget_at(memory, rules, below=rules.forget_below)
    assert FactEvidence.objects.filter(fact=fact).count() == 2
    revision = fact.revisions.get(version=2)
    assert (revision.verb, revision.actor_id) == ("reinforce", str(run.pk))
    assert {name: revision.before[name] for name in ("confidence", "mentions")} == {"confidence": 0.9, "mentions": 1}
    assert set(revision.before) == {"confidence", "mentions", "last_confirmed_at"}


def test_reinforced_confidence_ends_at_one(extract: Extractor, person: EndUser) -> None:
    factories.fact(person, confidence=0.98)
    extract(candidate())
    assert only(person).confidence == 1.0


def test_stated_confidence_is_the_highest_stated(extract: Extractor, person: EndUser) -> None:
    factories.fact(person, confidence=0.7)
    extract(candidate(confidence=0.9, quote="live in Leiden"))
    assert (only(person).stated_confidence, only(person).confidence) == (0.9, 0.75)


def test_facts_that_a_key_stated_are_reinforced_too(extract: Extractor, person: EndUser) -> None:
    add_fact(end_user=person, draft=FactDraft("Lives in Leiden", "identity"), actor=COMMAND, now=NOW)
    assert extract(candidate()).outcome == {"reinforced": 1}
    assert only(person).mentions == 2


def test_somebody_elses_fact_is_not_touched(extract: Extractor, person: EndUser) -> None:
    other = factories.fact(factories.end_user(person.tenant))
    before = state(other)
    assert extract(candidate()).outcome == {"stored": 1}
    assert state(other) == before


def test_an_agents_own_fact_is_not_touched(extract: Extractor, person: EndUser) -> None:
    before = state(factories.fact(person, agent_id="support", category="identity", key="home_city", value="Paris"))
    assert extract(candidate("Lives in Leiden", **CITY, value="Leiden")).outcome == {"stored": 1}
    assert state(only(person, agent_id="support")) == before


@pytest.mark.parametrize("status", ["superseded", "archived", "trashed", "rejected"])
def test_what_is_over_can_become_true_again(extract: Extractor, person: EndUser, status: str) -> None:
    before = state(factories.fact(person, status=status))
    assert extract(candidate()).outcome == {"stored": 1}
    assert state(only(person, status=status)) == before


@pytest.mark.parametrize(
    ("had", "again", "left"),
    [
        ({"expires_at": NOW + timedelta(days=2)}, 7, 7),
        ({"expires_at": NOW + timedelta(days=9)}, 7, 9),
        ({"expires_at": NOW + timedelta(days=2)}, None, None),
        ({"expires_at": NOW - timedelta(days=2)}, 7, 7),
        ({"expires_at": None}, 7, None),
    ],
)
def test_temporary_fact_said_again(
    extract: Extractor, person: EndUser, had: dict[str, Any], again: int | None, left: int | None
) -> None:
    run = factories.run(factories.session(person))
    factories.fact(person, extraction=run, **had)
    extract(candidate(expires_in_days=again))
    fact = only(person)
    days = fact.expires_at and round((fact.expires_at - NOW) / timedelta(days=1))
    assert days == left


def test_date_that_a_caller_set_stays(extract: Extractor, person: EndUser) -> None:
    factories.fact(person, expires_at=LATER)
    extract(candidate())
    assert only(person).expires_at == LATER


def section(summary: Any = "Bakes bread in Leiden.", should_update: Any = True) -> dict[str, Any]:
    return {"work_context": {"summary": summary, "should_update": should_update}}


def test_section_is_written(extract: Extractor, person: EndUser) -> None:
    run = extract(profile=section())
    row = ProfileSection.objects.get()
    assert run.outcome == {"profile_sections": 1}
    assert (row.end_user, row.tenant, row.section, row.summary) == (
        person, person.tenant, "work_context", "Bakes bread in Leiden.",
    )  # fmt: skip
    assert (row.version, row.binding, row.actor_kind, row.extraction) == (1, False, "run", run)
    assert row.prompt_version == run.prompt_version


STAYS: list[tuple[str, Any]] = [
    ("no update wanted", section(should_update=False)),
    ("a word instead of true", section(should_update="true")),
    ("one instead of true", section(should_update=1)),
    ("blank", section(" \n ")),
    ("no text", section(7)),
    ("null", {"work_context": None}),
    ("an upload alone", section("The user uploaded a file.")),
    ("no such section", {"star_sign": {"summary": "Leo", "should_update": True}}),
    ("no object", ["work_context"]),
]


@pytest.mark.parametrize("profile", [case[1] for case in STAYS], ids=[case[0] for case in STAYS])
def test_section_stays(extract: Extractor, person: EndUser, profile: Any) -> None:
    row = factories.profile_section(person, summary="Bakes cakes.")
    extract(profile=profile)
    row.refresh_from_db()
    assert (row.summary, row.version, ProfileSection.objects.count()) == ("Bakes cakes.", 1, 1)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("Bakes bread. Uploaded report.pdf today. Lives in Leiden.", "Bakes bread. Lives in Leiden."),
        ("在莱顿烤面包。上传了一份简历。", "在莱顿烤面包。"),
        ("Bakes\u202e bread\x07.\nSells it.", "Bakes bread.\nSells it."),
        ("x" * 4_000, "x" * 4_000),
    ],
)
def test_summary_is_cleaned(extract: Extractor, said: str, kept: str) -> None:
    extract(said=[("user", said)], profile=section(said))
    assert ProfileSection.objects.get().summary == kept


def test_next_prompt_shows_the_fact(extract: Extractor, model: Model) -> None:
    extract(candidate("Lives in Leiden"), profile=section())
    extract()
    assert "<known_facts>\n</known_facts>" in model.prompts[0]
    assert ">Lives in Leiden</fact>" in model.prompts[1]
    assert ">Bakes bread in Leiden.</section>" in model.prompts[1]
