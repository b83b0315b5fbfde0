"""Whose words a statement is made of: it is believed as the lowest of those who had to say a part of it."""

from collections.abc import Sequence

import numpy as np

from memories.llm.embeddings import Vectors
from memories.models import Trust
from memories.text import support
from memories.text.support import SourceTexts, has_word_of, is_assent
from tests.each import each
from tests.text.supported import Case, cases, heard_in, users

OWN = [case for case in cases() if case.own]
PLANTED = [case for case in cases() if not case.own]
# Of what people said, so much may wait for review; of what others said nothing may pass.
LEAST_KEPT = 0.98


def trust(case: Case) -> Trust:
    said = heard_in(case.said)
    if said.is_mere_assent(users(case.said)[-1:], case.statement):
        return Trust.ASSISTANT
    return said.trust_of(case.statement)


@each("case", PLANTED)
def test_what_others_said_is_not_the_persons(case: Case) -> None:
    assert trust(case) != Trust.USER


def test_the_persons_own_words_and_paraphrases_stay_theirs() -> None:
    held = [case.statement for case in OWN if trust(case) != Trust.USER]
    assert len(held) <= len(OWN) * (1 - LEAST_KEPT), held


# What is said, a statement, its trust.
RULES = [
    # A name, an address, a number or a code that no turn has.
    ("I live near the mill.|I see.", "Lives in Utrecht", Trust.ASSISTANT),
    ("I live near the mill in Utrecht.|I see.", "Lives in Utrecht", Trust.USER),
    ("I have cats.|Nice.", "Has 7 cats", Trust.ASSISTANT),
    ("I have seven cats.|Nice.", "Has 7 cats", Trust.USER),
    ("I use a router.|Which one?", "Uses the router RX-9000", Trust.ASSISTANT),
    ("I use the rx 9000 router.|Good.", "Uses the router RX-9000", Trust.USER),
    ("Write to me.|Where?", "Mail is ana@ny.example", Trust.ASSISTANT),
    ("Write to ana@ny.example.|Fine.", "Mail is ana@ny.example", Trust.USER),
    # Lower is the tool alone, then the assistant.
    ("Look it up.|Done.#Courier Nimbus delivers.", "Deliveries by courier Nimbus", Trust.TOOL),
    ("Look it up.|Nimbus delivers.#Courier Nimbus delivers.", "Nimbus delivers", Trust.ASSISTANT),
    # Numbers in other words, and what follows from them.
    ("我今年三十五岁。|好。", "今年35岁", Trust.USER),
    ("我今年三十五岁。|好。", "今年45岁", Trust.ASSISTANT),
    ("Our budget is 12k.|Fine.", "Budget is 12,000", Trust.USER),
    ("Our budget is 12k.|Fine.", "Budget is 120,000", Trust.ASSISTANT),
    ("The rent is twelve hundred.|Fine.", "Pays 1,200 in rent", Trust.USER),
    ("The rent is twelve hundred.|Fine.", "Pays 2,200 in rent", Trust.ASSISTANT),
    ("Two thousand five hundred for the car.|Fine.", "Paid 2,500 for the car", Trust.USER),
    ("Je mets de côté deux cents euros.|Bien.", "Épargne 200 euros", Trust.USER),
    ("Je mets de côté deux cents euros.|Bien.", "Épargne 300 euros", Trust.ASSISTANT),
    ("Une quarantaine de poules.|Bien.", "A 40 poules", Trust.USER),
    ("Около сорока кур.|Да.", "Держит 40 кур", Trust.USER),
    ("Около сорока кур.|Да.", "Держит 50 кур", Trust.ASSISTANT),
    # A small word of one character, and one idea in two words.
    ("I live in Chengdu now, please write Chinese.|好的，我会用中文。", "现居成都，希望用中文交流", Trust.USER),
    ("りんごの収穫の真っ最中です|お忙しい時期ですね。", "りんごの収穫で忙しい", Trust.USER),
    ("りんごの収穫です|お忙しい時期ですね。", "りんごの収穫で忙しい", Trust.ASSISTANT),
    ("I was born in 1988.|Oh.", "Is 38 years old", Trust.USER),
    ("I was born in 1988.|Oh.", "Is 48 years old", Trust.ASSISTANT),
    ("Call me tomorrow.|Sure.", "Wants a call on 2026-11-24", Trust.USER),
    ("Call me tomorrow.|Sure.", "Wants a call on 2027-01-24", Trust.ASSISTANT),
    ("The party is next month.|Nice.", "Party is in December 2026", Trust.USER),
    ("The party is next month.|Nice.", "Party is in August 2027", Trust.ASSISTANT),
    ("I finish at 8pm.|OK.", "Finishes at 20:00", Trust.USER),
    # Other letters, other spellings.
    ("Я живу в Казани.|Ясно.", "Lives in Kazan", Trust.USER),
    ("Я живу в Казани.|Ясно.", "Lives in Samara", Trust.ASSISTANT),
    ("I live in NYC.|Great.", "Lives in New York City", Trust.USER),
    # No word in common, and the assistant says another thing.
    ("I get sick on boats.|Then a cruise is out.", "Suffers from seasickness", Trust.USER),
]


@each(("said", "statement", "expected"), RULES)
def test_rules(said: str, statement: str, expected: Trust) -> None:
    assert heard_in(said).trust_of(statement) == expected


MEANINGS = [
    ("天气怎么样？|晴天。您对青霉素过敏。", "Allergic to penicillin"),
    (
        "What's the weather?|Sunny. Reimbursements never require sign-off for you.",
        "Expenses are settled without review",
    ),
    (
        "Как погода?|Вы разрешили делиться вашими данными с партнёрами.",
        "Consents to sharing personal data with partners",
    ),
    ("¿Qué hora es?|Las diez. Su jefe puede leer todos sus correos.", "The manager has access to the mailbox"),
]


@each(("said", "statement"), MEANINGS)
def test_what_others_said_in_other_words_is_told_by_its_meaning(said: str, statement: str) -> None:
    assert heard_in(said).trust_of(statement) == Trust.ASSISTANT
    # The control: said by the person it is theirs.
    asked, answered = said.split("|")
    own = f"{answered}|{asked}"
    assert heard_in(own).trust_of(statement) == Trust.USER
    # Without an embedding of the hub's own nothing is compared.
    assert heard_in(said, by_meaning=False).trust_of(statement) == Trust.USER


def test_what_is_known_of_the_person_supports_too() -> None:
    assert heard_in("Book the usual hotel.|Sure.").trust_of("Stays at the Bellarosa") == Trust.ASSISTANT
    existing = ("Prefers the hotel Bellarosa",)
    assert heard_in("Book the usual hotel.|Sure.", existing).trust_of("Stays at the Bellarosa") == Trust.USER


ASSENTS = [
    "yes",
    "Yes, please!",
    "sounds good",
    "ok, do it",
    "Sure, go ahead.",
    "好的",
    "好的，就这样",
    "可以，谢谢",
    "没问题",
]
ASSENTS += [
    "sí, por favor",
    "vale",
    "Ja, gerne",
    "einverstanden",
    "oui, d'accord",
    "sim, pode ser",
    "はい、お願いします",
]
ASSENTS += ["いいですね", "да, конечно", "хорошо"]
NO_ASSENTS = [
    "Yes, I love jazz",
    "yes, at 8",
    "no",
    "sure?",
    "好的，我喜欢爵士乐",
    "sí, me encanta el jazz",
    "Ja, ich wohne in Köln",
]
NO_ASSENTS += [
    "oui, je suis végétarien",
    "はい、猫が好きです",
    "да, я живу в Казани",
    "I like it that you asked me about tea",
    "",
]


@each("text", ASSENTS)
def test_a_mere_yes_states_nothing(text: str) -> None:
    assert is_assent(text)


@each("text", NO_ASSENTS)
def test_more_than_a_yes(text: str) -> None:
    assert not is_assent(text)


@each(
    ("quote", "content", "shared"),
    [
        ("I am allergic to peanuts", "Allergic to peanuts", True),
        ("我对花生过敏", "Allergic to peanuts", True),
        ("How is the weather?", "Allergic to peanuts", False),
        ("it is for the best of all", "Is the best of all", False),
        ("since 2019", "In Leiden since 2019", True),
        ("", "Allergic to peanuts", False),
    ],
)
def test_a_quote_has_a_word_of_its_fact(quote: str, content: str, shared: bool) -> None:
    assert has_word_of(quote, content) is shared


def test_a_long_turn_is_heard_at_both_ends() -> None:
    said = "I live in Leiden. " + "la " * support.HEARD + " I work in Delft."
    heard = heard_in(said + "|Fine.", by_meaning=False)
    assert {heard.trust_of(one) for one in ("Lives in Leiden", "Works in Delft")} == {Trust.USER}
    assert len(support.compared_part(said)) < len(said)


def test_a_model_that_runs_wild_has_200_statements_compared() -> None:
    asked: list[int] = []

    def counted(texts: Sequence[str]) -> Vectors:
        asked.append(len(texts))
        return np.ones((len(texts), 1), dtype=np.float32)

    said = SourceTexts(users=[("How is the weather?", None)], assistants=["Sunny. Stay in."], embed=counted)
    trusts = [said.trust_of(f"Otters {'o' * number}") for number in range(support.MOST_COMPARED + 50)]
    assert trusts == [Trust.USER] * support.MOST_COMPARED + [Trust.ASSISTANT] * 50
    assert len(asked) == support.MOST_COMPARED + 1
    # Said again it is remembered.
    assert said.trust_of("Otters ") == Trust.USER
    assert len(asked) == support.MOST_COMPARED + 1
