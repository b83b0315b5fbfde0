"""Reconciliation: what becomes of candidates beside what is already known; through whole attempts."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from memories import curation
from memories.audit import Actor
from memories.curation import FactDraft
from memories.models import EndUser, ExtractionRun, Fact, FactEvidence, FactRefusal, ProfileSection
from memories.pipeline import consolidation
from memories.pipeline.fact_rows import Writer
from memories.pipeline.gate import Accepted
from memories.scoring import decay
from tests import factories
from tests.factories import COMMAND, NOW
from tests.pipeline.model import Model, candidate

LATER = NOW + timedelta(days=10)
SAID = (("user", "I live in Leiden and drink tea"), ("assistant", "Noted"), ("tool", "42"), ("user", "我住在杭州"))
CITY = {"category": "identity", "key": "home_city"}


@pytest.fixture
def person(db: None) -> EndUser:
    return factories.end_user()


class Extractor:
    """Posts turns for one person and extracts them with the answer that the model is told to give."""

    def __init__(self, model: Model, person: EndUser) -> None:
        self.model, self.person = model, person

    def __call__(self, *new_facts: Any, now: datetime = NOW, **rest: Any) -> ExtractionRun:
        self.model.say(*new_facts, **rest)
        session = factories.session(self.person, SAID, flush=True)
        run = consolidation.consolidate(session_id=session.pk, now=now)
        assert run
        assert run.status == "committed", run.failure
        return run


@pytest.fixture
def extract(model: Model, person: EndUser) -> Extractor:
    return Extractor(model, person)


def facts(person: EndUser, **by: Any) -> list[Fact]:
    return list(Fact.objects.filter(end_user=person, **by).order_by("created_at", "pk"))


def only(person: EndUser, **by: Any) -> Fact:
    (fact,) = facts(person, **by)
    return fact


def state(fact: Fact) -> dict[str, Any]:
    return dict(Fact.objects.filter(pk=fact.pk).values().get())


# 1. New facts


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
    assert (evidence.session, evidence.turn.content) == (run.session, SAID[0][1])
    revision = fact.revisions.get()
    assert (revision.version, revision.verb, revision.actor_kind, revision.actor_id) == (
        1,
        "extract",
        "run",
        str(run.pk),
    )
    assert revision.after["content"] == "Lives in Leiden"


def test_chinese_stays_chinese(extract: Extractor, person: EndUser) -> None:
    extract(candidate("住在杭州", evidence=[4], quote="我住在杭州！"))
    assert (only(person).content, only(person).raw, only(person).source) == (
        "住在杭州",
        "我住在杭州！",
        "explicit_user_input",
    )


def test_quote_is_kept_with_the_turn_that_says_it(extract: Extractor) -> None:
    extract(candidate(evidence=[1, 4], quote="我住在杭州"))
    assert list(FactEvidence.objects.values_list("turn_number", "quote")) == [(1, ""), (4, "我住在杭州")]


@pytest.mark.parametrize("category", ["knowledge", "constraint"])
def test_forgetting_is_set_at_once(extract: Extractor, person: EndUser, category: str) -> None:
    extract(candidate(category=category, importance=0.8))
    fact = only(person)
    assert fact.decay_score == 0.8
    assert fact.forget_at == decay.forget_at(
        importance=0.8, last_reinforced=fact.last_confirmed_at, mentions=1, category=category, protected=False
    )
    assert (fact.forget_at is None) == (category == "constraint")


def test_temporary_fact_expires(extract: Extractor, person: EndUser) -> None:
    extract(candidate(durability="temporary", expires_in_days=7))
    assert only(person).expires_at == only(person).created_at + timedelta(days=7)


@pytest.mark.parametrize(
    ("evidence", "trust", "source", "cited"),
    [
        ([2], "assistant", "system_generated", [2]),
        ([3], "tool", "external_data", [3]),
        ([], "assistant", "system_generated", [2]),
    ],
)
def test_what_others_said_is_a_suggestion(
    extract: Extractor, person: EndUser, evidence: list[int], trust: str, source: str, cited: list[int]
) -> None:
    assert extract(candidate(evidence=evidence)).outcome == {"suggested": 1}
    fact = only(person)
    assert (fact.status, fact.trust, fact.source) == ("pending", trust, source)
    assert list(fact.evidence.values_list("turn_number", flat=True)) == cited


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


def test_two_hundred_times_the_same(extract: Extractor, person: EndUser) -> None:
    run = extract(*[candidate()] * 200)
    assert (run.outcome, run.refusals) == ({"stored": 1}, {"repeated": 199})
    assert (only(person).mentions, only(person).confidence) == (1, 0.8)


# 2. The same text


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
    assert fact.forget_at == decay.forget_at(
        importance=0.5, last_reinforced=fact.last_confirmed_at, mentions=2, category="knowledge", protected=False
    )
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
    curation.add_fact(end_user=person, draft=FactDraft("Lives in Leiden", "identity"), actor=COMMAND, now=NOW)
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


# 3. The same key


def test_same_value_reinforces(extract: Extractor, person: EndUser) -> None:
    known = factories.fact(person, "Lives in Leiden", **CITY, value="Leiden")
    run = extract(candidate("Leiden is where she lives", **CITY, value=" LEIDEN"))
    assert run.outcome == {"reinforced": 1}
    assert (only(person).pk, only(person).mentions, only(person).content) == (known.pk, 2, "Lives in Leiden")


def test_two_wordings_in_one_batch_are_one_mention(extract: Extractor, person: EndUser) -> None:
    first, second = (
        candidate("Lives in Leiden", **CITY, value="Leiden"),
        candidate("Leiden is home", **CITY, value="leiden"),
    )
    assert extract(first, second | {"evidence": [4]}).outcome == {"stored": 1, "repeated": 1}
    assert (only(person).mentions, FactEvidence.objects.count()) == (1, 2)


SUPERSEDES: list[tuple[str, dict[str, Any], dict[str, Any], bool]] = [
    ("higher", {"confidence": 0.8}, {"confidence": 0.9}, True),
    ("on a tie the newer", {"confidence": 0.9}, {"confidence": 0.9}, True),
    ("lower", {"confidence": 0.9}, {"confidence": 0.85}, False),
    ("reinforcement does not count", {"confidence": 1.0, "stated_confidence": 0.8}, {"confidence": 0.85}, True),
    ("0.95 always wins", {"confidence": 1.0}, {"confidence": 0.95}, True),
    ("just below", {"confidence": 1.0}, {"confidence": 0.94}, False),
]


@pytest.mark.parametrize(
    ("had", "newcomer", "wins"), [case[1:] for case in SUPERSEDES], ids=[case[0] for case in SUPERSEDES]
)
def test_other_value(
    extract: Extractor, person: EndUser, had: dict[str, Any], newcomer: dict[str, Any], wins: bool
) -> None:
    old = factories.fact(person, "Lives in Paris", **CITY, value="Paris", **had)
    run = extract(candidate("Lives in Leiden", **CITY, value="Leiden", quote="live in Leiden", **newcomer), now=LATER)
    old.refresh_from_db()
    if not wins:
        assert run.outcome == {"conflicts": 1}
        assert (only(person).pk, only(person).version) == (old.pk, 1)
        return
    new = only(person, status="active")
    assert run.outcome == {"stored": 1, "superseded": 1}
    assert (old.status, old.superseded_by, old.valid_to, old.content) == (
        "superseded",
        new,
        new.valid_from,
        "Lives in Paris",
    )
    assert (new.content, new.value) == ("Lives in Leiden", "Leiden")
    assert [(item.version, item.verb, item.actor_id) for item in old.revisions.all()] == [(2, "supersede", str(run.pk))]
    assert new.revisions.get().verb == "extract"


@pytest.mark.parametrize(
    ("had", "said"),
    [
        ({"category": "identity", "key": "home_city", "value": ""}, {**CITY, "value": "Leiden"}),
        ({"category": "identity", "key": "home_city", "value": "Paris"}, {**CITY, "value": None}),
        ({"category": "context", "key": "home_city", "value": "Paris"}, {**CITY, "value": "Leiden"}),
        ({"category": "identity", "key": "birth_city", "value": "Paris"}, {**CITY, "value": "Leiden"}),
        ({"category": "identity", "key": "", "value": "Paris"}, {"category": "identity", "value": "Leiden"}),
    ],
)
def test_without_a_common_key_and_two_values_both_stay(
    extract: Extractor, person: EndUser, had: dict[str, Any], said: dict[str, Any]
) -> None:
    factories.fact(person, "Paris", **had)
    assert extract(candidate("Leiden", **said)).outcome == {"stored": 1}
    assert len(facts(person, status="active")) == 2


def test_value_that_has_expired_is_no_rival(extract: Extractor, person: EndUser) -> None:
    over = factories.fact(person, "Stays in Paris", **CITY, value="Paris", confidence=1.0, expires_at=NOW)
    assert extract(candidate("Lives in Leiden", **CITY, value="Leiden")).outcome == {"stored": 1}
    over.refresh_from_db()
    assert (over.status, over.version) == ("active", 1)


def test_of_two_values_in_one_batch_the_later_said_stays(extract: Extractor, person: EndUser) -> None:
    newer = candidate("Lives in Hangzhou", **CITY, value="Hangzhou", evidence=[4])
    older = candidate("Lives in Leiden", **CITY, value="Leiden", evidence=[1])
    assert extract(newer, older).outcome == {"stored": 2, "superseded": 1}
    assert only(person, status="active").value == "Hangzhou"
    assert only(person, status="superseded").superseded_by == only(person, status="active")


# 4. Trust


def test_suggestion_said_again_by_an_assistant(extract: Extractor, person: EndUser) -> None:
    extract(candidate(evidence=[2]))
    assert extract(candidate(evidence=[2])).outcome == {"reinforced": 1}
    assert (only(person).status, only(person).mentions) == ("pending", 2)


def test_suggestion_that_the_person_confirms_becomes_a_fact(extract: Extractor, person: EndUser) -> None:
    extract(candidate(evidence=[2], confidence=0.7))
    old = factories.fact(person, "Lives in Paris", **CITY, value="Paris")
    run = extract(candidate(evidence=[1], quote="live in Leiden", **CITY, value="Leiden"))
    fact = only(person, content="Lives in Leiden")
    assert run.outcome == {"confirmed": 1, "superseded": 1}
    assert (fact.status, fact.trust, fact.source, fact.confidence) == ("active", "user", "explicit_user_input", 0.9)
    assert (fact.mentions, fact.raw, fact.extraction) == (2, "live in Leiden", run)
    assert (fact.key, fact.value) == ("home_city", "Leiden")
    old.refresh_from_db()
    assert (old.status, old.superseded_by) == ("superseded", fact)


def test_suggestion_that_loses_to_a_fact_stays_one(extract: Extractor, person: EndUser) -> None:
    extract(candidate(evidence=[2]))
    factories.fact(person, "Lives in Paris", **CITY, value="Paris", confidence=1.0)
    assert extract(candidate(evidence=[1], **CITY, value="Leiden")).outcome == {"conflicts": 1}
    assert only(person, content="Lives in Leiden").status == "pending"


@pytest.mark.parametrize("evidence", [[2], [3], [], [99], [1, 2]])
@pytest.mark.parametrize("had", [{}, {"category": "identity", "key": "home_city", "value": "Leiden"}])
def test_lower_trust_leaves_a_fact_as_it_is(
    extract: Extractor, person: EndUser, evidence: list[int], had: dict[str, Any]
) -> None:
    known = factories.fact(person, **had)
    before = state(known)
    assert extract(candidate(evidence=evidence, **CITY, value="Leiden")).outcome == {"outranked": 1}
    assert state(known) == before
    assert not known.evidence.exists()


def test_assistant_does_not_reinforce_its_own_word_once_it_is_approved(extract: Extractor, person: EndUser) -> None:
    before = state(factories.fact(person, trust="assistant"))
    assert extract(candidate(evidence=[2])).outcome == {"outranked": 1}
    assert state(only(person)) == before


def test_lower_trust_supersedes_nothing(extract: Extractor, person: EndUser) -> None:
    known = factories.fact(person, "Lives in Paris", **CITY, value="Paris", confidence=0.7)
    before = state(known)
    assert extract(candidate(evidence=[2], confidence=1.0, **CITY, value="Leiden")).outcome == {"suggested": 1}
    assert state(known) == before


def test_a_tool_does_not_add_to_what_an_assistant_said(extract: Extractor, person: EndUser) -> None:
    extract(candidate(evidence=[2]))
    assert extract(candidate(evidence=[3])).outcome == {"outranked": 1}
    assert extract(candidate(evidence=[2])).outcome == {"reinforced": 1}
    assert only(person).trust == "assistant"


def test_persons_word_does_not_supersede_an_operators(extract: Extractor, person: EndUser) -> None:
    before = state(factories.fact(person, "Lives in Paris", **CITY, value="Paris", trust="operator"))
    assert extract(candidate(confidence=1.0, **CITY, value="Leiden")).outcome == {"outranked": 1}
    assert state(only(person)) == before


# 5. The operator's word

PROTECTED = [{"binding": True}, {"pinned": True}, {"locked": True}]


@pytest.mark.parametrize("mark", PROTECTED)
@pytest.mark.parametrize("evidence", [[1], [2]])
@pytest.mark.parametrize(
    "newcomer",
    [
        candidate("lives in leiden", confidence=1.0),
        candidate("Leiden is home", confidence=1.0, **CITY, value="Leiden"),
        candidate("Lives in Utrecht", confidence=1.0, **CITY, value="Utrecht"),
        candidate("Lives elsewhere", confidence=1.0, **CITY),
    ],
    ids=["same text", "same value", "other value", "no value"],
)
def test_protected_fact_is_never_changed(
    extract: Extractor, person: EndUser, mark: dict[str, bool], evidence: list[int], newcomer: dict[str, Any]
) -> None:
    known = factories.fact(person, "Lives in Leiden", **CITY, value="Leiden", **mark)
    before = state(known)
    run = extract(newcomer | {"evidence": evidence}, candidate("Drinks tea"))
    assert run.outcome == {"operator_word": 1, "stored": 1}
    assert state(known) == before
    assert (known.revisions.count(), known.evidence.count()) == (0, 0)
    assert {fact.content for fact in facts(person)} == {"Lives in Leiden", "Drinks tea"}


@pytest.mark.parametrize(("evidence", "reason"), [([1], "refused_by_operator"), ([2], "dropped_after_refusal")])
def test_what_an_operator_set_right_does_not_come_back(
    extract: Extractor, person: EndUser, evidence: list[int], reason: str
) -> None:
    extract(candidate("Lives in Leiden"))
    actor = Actor.operator(factories.operator())
    curation.correct_fact(
        fact_id=only(person).pk, tenant=None, content="Lives in Delft", reason="moved", actor=actor, now=NOW
    )
    run = extract(candidate("Lives in Leiden", evidence=evidence), candidate("Lives in Delft"))
    assert (run.outcome, run.refusals) == ({"operator_word": 1}, {reason: 1})
    assert (only(person).content, only(person).mentions) == ("Lives in Delft", 1)


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize(
    ("evidence", "reason"),
    [([1], "refused_by_operator"), ([2], "dropped_after_refusal"), ([3], "dropped_after_refusal")],
)
@pytest.mark.parametrize(
    "newcomer",
    [candidate("LIVES in Leiden"), candidate("Lives in Utrecht", **CITY, value="Utrecht")],
    ids=["same text", "same key"],
)
def test_forgotten_fact_does_not_come_back(
    extract: Extractor, person: EndUser, hard: bool, evidence: list[int], reason: str, newcomer: dict[str, Any]
) -> None:
    extract(candidate("Lives in Leiden", **CITY, value="Leiden"))
    forget = curation.delete_fact if hard else curation.forget_fact
    forget(fact_id=only(person).pk, tenant=None, actor=Actor.operator(factories.operator()), now=NOW)
    run = extract(newcomer | {"evidence": evidence}, candidate("Drinks tea"))
    assert (run.outcome, run.refusals) == ({"stored": 1}, {reason: 1})
    assert only(person, status="active").content == "Drinks tea"


def test_a_refusal_holds_for_one_person_only(extract: Extractor, person: EndUser) -> None:
    forgotten = factories.fact(factories.end_user(person.tenant), "Lives in Leiden")
    curation.forget_fact(fact_id=forgotten.pk, tenant=None, actor=COMMAND, now=NOW)
    assert FactRefusal.objects.exists()
    assert extract(candidate("Lives in Leiden")).outcome == {"stored": 1}


# 6. A race on one text


def test_text_that_somebody_stores_meanwhile_is_reinforced(
    extract: Extractor, person: EndUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look at what is known misses a row that a key commits a moment later: the constraint catches it."""
    store = Writer.store

    def store_late(writer: Writer, item: Accepted) -> Fact | None:
        monkeypatch.setattr(Writer, "store", store)
        factories.fact(person, "LIVES in leiden")
        return store(writer, item)

    monkeypatch.setattr(Writer, "store", store_late)
    run = extract(candidate("Lives in Leiden"), candidate("Drinks tea"))
    assert run.outcome == {"reinforced": 1, "stored": 1}
    assert only(person, content="LIVES in leiden").mentions == 2


# 7. References to known facts


def test_reinforced_and_removed_are_counted_and_not_applied(extract: Extractor, person: EndUser) -> None:
    known = factories.fact(person, "Drinks coffee")
    before = state(known)
    good = {"fact": 1, "reason": "said again", "evidence": [1]}
    unknown, unreasoned = good | {"fact": 7}, good | {"reason": ""}
    run = extract(
        candidate("Drinks tea"),
        candidate(confidence=0.1),
        reinforced=[good, unknown, "nonsense"],
        removed=[good | {"replaced_by": 0}, good | {"replaced_by": 1}, good | {"replaced_by": None}, unreasoned],
    )
    assert state(known) == before
    assert run.outcome == {"stored": 1, "named_reinforced": 1, "named_removed": 2}
    assert run.refusals == {
        "low_confidence": 1, "unknown_fact": 1, "malformed": 1, "replacement_not_stored": 1, "no_reason": 1,
    }  # fmt: skip


# 8. The profile


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


def test_section_is_written_anew(extract: Extractor, person: EndUser) -> None:
    row = factories.profile_section(person, summary="Bakes cakes.")
    run = extract(profile=section())
    row.refresh_from_db()
    assert (row.summary, row.version, row.extraction) == ("Bakes bread in Leiden.", 2, run)


STAYS: list[tuple[str, Any]] = [
    ("no update wanted", section(should_update=False)),
    ("a word instead of true", section(should_update="true")),
    ("one instead of true", section(should_update=1)),
    ("blank", section(" \n ")),
    ("no text", section(7)),
    ("null", {"work_context": None}),
    ("the same", section("Bakes cakes.")),
    ("an upload alone", section("The user uploaded a file.")),
    ("too long", section("x" * 4_001)),
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
    extract(profile=section(said))
    assert ProfileSection.objects.get().summary == kept


def test_section_of_an_operator_stays(extract: Extractor, person: EndUser) -> None:
    actor = Actor.operator(factories.operator())
    curation.write_profile_section(end_user=person, section="work_context", summary="Retired.", actor=actor, now=NOW)
    other = {"personal_context": {"summary": "Speaks Dutch.", "should_update": True}}
    run = extract(profile=section() | other)
    assert run.outcome == {"operator_section": 1, "profile_sections": 1}
    summaries = dict(ProfileSection.objects.values_list("section", "summary"))
    assert summaries == {"work_context": "Retired.", "personal_context": "Speaks Dutch."}


# 9. What is asked for next holds what is known


def test_next_prompt_shows_the_fact(extract: Extractor, model: Model) -> None:
    extract(candidate("Lives in Leiden"), profile=section())
    extract()
    assert "<known_facts>\n</known_facts>" in model.prompts[0]
    assert ">Lives in Leiden</fact>" in model.prompts[1]
    assert ">Bakes bread in Leiden.</section>" in model.prompts[1]
