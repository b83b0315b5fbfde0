"""The instructions carry the rules, and what is copied from their examples is known again."""

import re
from datetime import date

from memories.categories import Category
from memories.llm import tokens
from memories.llm.prompts import memory_update
from memories.llm.prompts.memory_update import CandidateFact
from memories.llm.prompts.memory_update_text import EXAMPLES, INSTRUCTIONS, MARKS, is_example
from tests.each import each

FACTS = [fact for example in EXAMPLES for fact in example.facts]


@each("fact", FACTS)
def test_an_example_is_right(fact: dict[str, object]) -> None:
    [example] = [one for one in EXAMPLES if fact in one.facts]
    assert str(fact["quote"]) in example.spoken
    candidate = CandidateFact.model_validate(fact)
    assert candidate.category == fact["category"] in Category.values
    assert set(fact) <= set(CandidateFact.model_fields)
    assert candidate.durability == "durable" or candidate.expires_in_days


def test_the_dates_of_the_examples_are_right() -> None:
    assert "Today were 2031-05-20, a Tuesday" in INSTRUCTIONS
    assert f"{date(2031, 5, 20):%A}" == "Tuesday"
    # 下周三 is the Wednesday of the next week.
    assert (date(2031, 5, 28) - date(2031, 5, 20)).days == 8
    assert f"{date(2031, 5, 28):%A}" == "Wednesday"


def test_examples_are_in_both_languages_and_not_in_the_form_of_the_data() -> None:
    said = [example.spoken for example in EXAMPLES]
    assert any(text.isascii() for text in said)
    assert any(re.search(r"[\u3400-\u9fff]", text) for text in said)
    assert re.findall(r"<(?!\s)\w+", INSTRUCTIONS) == []
    assert all(example.spoken in INSTRUCTIONS for example in EXAMPLES)


@each(
    "text",
    [
        *(fact["content"] for fact in FACTS),
        *(fact["quote"] for fact in FACTS),
        *MARKS,
        "  lives in VEXHOLM.",
        "The user has a sister named Ysolwen",
        "用户在翎川市出差",
        "Ｖｅｘｈｏｌｍ",
    ],
)
def test_what_is_copied_is_known(text: str) -> None:
    assert is_example(text)


@each("text", ["", " ", "Lives in Leiden", "Has a sister, Ann", "在杭州出差", "一律用公里", "My sister", "住在苏州"])
def test_what_people_say_is_no_example(text: str) -> None:
    assert not is_example(text)


def test_each_mark_is_in_the_examples_and_nowhere_else_in_the_instructions() -> None:
    rules, examples = INSTRUCTIONS.split("Examples of new_facts")
    assert [mark for mark in MARKS if mark not in examples or mark in rules] == []


RULES = (
    *("do not obey", "不要翻译", "Today", "expires_in_days", "source_error", "replaced_by", "an operator's word"),
    *("home_city", "employer", "job_title", "diet", "allergy_peanuts", "tone", "answer_language", "not allergic"),
    *("0.9-1.0 said outright", "0.7-0.8 strongly implied", "0.5-0.6 inferred", "at least 0.95", "I think I maybe"),
    *("work_context, 2-3", "personal_context, 1-2", "top_of_mind, 3-5", "recent_months, 4-6", "earlier_context, 3-5"),
    *("long_term_background, 2-4", "asks you to remember", "standing instructions", "later tasks", "JavaScript"),
    *("on my phone", "one-off tasks", "greetings", "uploads", "passwords"),
)


def test_the_rules_are_told() -> None:
    assert [said for said in RULES if said not in INSTRUCTIONS] == []


def test_the_instructions_stay_compact() -> None:
    assert tokens.count(INSTRUCTIONS) <= 2_000
    assert memory_update.VERSION == "memory_update-5"
