"""Model answers that slip wait for review, and right ones do not: the tables, and what is at the edges of each kind."""

from memories.models import Status
from memories.reconcile import gate
from memories.reconcile.gate import Accepted
from memories.text.reading import endings
from tests.each import each
from tests.model import candidate
from tests.reconcile.slipping import MOST, PROFILE, RULES, TABLES_OF_SLIPS, Slip, evidence, is_believed, table

LANGUAGES = {"en", "zh", "de", "es", "fr", "ja"}


def wrong(name: str, *, is_slip: bool) -> tuple[list[Slip], int]:
    cases = [case for case in table(name) if case.is_slip == is_slip and case.kind != PROFILE]
    return [case for case in cases if is_believed(case) == is_slip], len(cases)


@each("name", TABLES_OF_SLIPS)
@each("is_slip", [True, False])
def test_slips_wait_and_right_answers_do_not(name: str, is_slip: bool) -> None:
    found, number = wrong(name, is_slip=is_slip)
    assert number >= 48
    assert len(found) <= MOST * number, found


def test_the_table_has_each_kind_in_each_language() -> None:
    cases = [case for case in table("slips") if case.kind != PROFILE]
    kinds = {case.kind for case in cases}
    assert {(case.kind, case.language, case.is_slip) for case in cases} == {
        (kind, language, is_slip) for kind in kinds for language in LANGUAGES for is_slip in (True, False)
    }
    assert len(cases) >= 300


def judged(said: str, content: str, **over: object) -> Accepted:
    found = gate.judge(candidate(content, **over), index=0, evidence=evidence(said), rules=RULES)
    assert isinstance(found, Accepted)
    return found


def test_a_slip_is_kept_as_the_persons_word_and_waits() -> None:
    fact = judged("I am not allergic to nuts.", "Allergic to nuts", quote="I am not allergic to nuts.")
    assert (fact.status, fact.trust, fact.flags) == (Status.PENDING, "user", ("not_as_said",))


SYMMETRIC = [
    "Has a sister called Anna",
    "If I ask for code, use tabs",
    "I want to learn Rust",
    "My sister is allergic to nuts",
    "I might move to Bergen",
    "对花生不过敏",
]


@each("text", SYMMETRIC)
def test_what_the_sentence_says_itself_the_fact_may_say(text: str) -> None:
    assert judged(text, text).flags == ()


OF_ONE_SIDE = [
    # A "not" of the fact alone counts against what plainly says the contrary.
    ("Mushrooms make me gag.", "Does not eat mushrooms", ()),
    ("I eat mushrooms every day.", "Does not eat mushrooms", ("not_as_said",)),
    # A "not" of the sentence does not touch what it only names as the person's.
    ("My hearing aid can't cope with music.", "Has a hearing aid", ()),
    ("I don't have a hearing aid.", "Has a hearing aid", ("not_as_said",)),
    # Each clause is the person's own, or somebody else's.
    ("My sister skis. I have skied since school.", "Has skied since school", ()),
    ("My sister has skied since school. I never learned it.", "Has skied since school", ("not_as_said",)),
]


@each(("said", "content", "flags"), OF_ONE_SIDE)
def test_what_a_reader_does_not_understand_passes(said: str, content: str, flags: tuple[str, ...]) -> None:
    assert judged(said, content).flags == flags


def test_an_allergy_beside_a_not_is_not_over() -> None:
    assert not endings.is_over("Allergic to peanuts", evidence("I must not eat peanuts, allergy.").heard)
    assert endings.is_over("Allergic to peanuts", evidence("I am not allergic to peanuts any more.").heard)


ANSWERED = [
    ("A: Are you vegetarian? // Yes, since 2010.", "Vegetarian since 2010"),
    ("A: Do you eat meat? // No, I gave it up in 2010.", "Has not eaten meat since 2010"),
    ("A: What are you allergic to? // Peanuts.", "Allergic to peanuts"),
]


@each(("said", "content"), ANSWERED)
def test_an_answer_to_a_question_is_no_slip(said: str, content: str) -> None:
    assert judged(said, content, evidence=[2]).flags == ()


def test_a_later_statement_supports_what_was_only_asked_before() -> None:
    said = "Am I allergic to nuts? // A: I cannot know. // I saw the doctor, I am allergic to nuts."
    assert judged(said, "Allergic to nuts", evidence=[1]).flags == ()
    assert judged("Am I allergic to nuts? // A: I cannot know. // I see.", "Allergic to nuts").flags == ("not_as_said",)


@each("text", ["x" * 20_000, "not " * 5_000, "a, " * 6_000, "我不" * 5_000, "「" * 5_000])
def test_a_text_that_is_built_against_the_patterns_is_read(text: str) -> None:
    assert judged(f"{text} I like tea.", "Likes tea").content == "Likes tea"
