"""What still says a corrected claim: by the words that the correction took away, in any form and in Chinese."""

from memories.text.claims import OldClaim
from tests.each import each

LEIDEN = ("Lives in Leiden", "Lives in Utrecht")
ENGINEER = ("Works as a data engineer at a logistics company", "Is a product manager at a bank")
SENTENCES = ("Answers in at most three sentences", "Answers as long as it takes")
STILL = [
    (*LEIDEN, "Moved to LEIDEN in 2019"),
    (*LEIDEN, "The user, a Leidenaar, asked for directions"),
    (*LEIDEN, "住在Leiden已经三年"),
    ("Allergic to peanuts", "Allergic to walnuts", "Gets a rash from a peanut"),
    ("Works as an engineer at Philips", "Works as a designer at ASML", "Asked about the canteen of Philips"),
    ("Writes to anna@example.org", "Writes to anna@example.com", "Her mail is Anna@Example.org"),
    ("Has 2 children", "Has 3 children", "Talked about the two children"),
    ("Prefers tea in the morning", "Prefers coffee in the morning", "Drinks tea"),
    ("住在莱顿", "住在乌得勒支", "用户几年前搬到莱顿"),
    ("喜欢喝茶", "喜欢喝咖啡", "每天早上都要泡茶"),
    ("对花生过敏", "对核桃过敏", "吃花生会起疹子"),
    ("在飞利浦当工程师", "在阿斯麦当设计师", "公司是飞利浦"),
]
NO_LONGER = [
    (*LEIDEN, "Lives in Utrecht with two cats"),
    (*LEIDEN, "Lives in a small house"),
    (*LEIDEN, ""),
    ("Allergic to peanuts", "Allergic to walnuts", "Allergic to cats"),
    ("Has 2 children", "Has 3 children", "Has 2 bicycles"),
    ("Has 2 children", "Has 3 children", "Has 3 children"),
    ("住在莱顿", "住在乌得勒支", "住在乌得勒支的老城"),
    ("对花生过敏", "对核桃过敏", "对猫毛过敏"),
    ("Likes cats", "Likes cats and dogs", "Likes cats and dogs"),
]


@each(("old", "new", "text"), STILL)
def test_it_is_found_by_its_distinctive_words(old: str, new: str, text: str) -> None:
    assert OldClaim(old, new).is_in(text)


@each(("old", "new", "text"), NO_LONGER)
def test_what_the_two_share_is_not_the_old_claim(old: str, new: str, text: str) -> None:
    assert not OldClaim(old, new).is_in(text)


@each(
    ("old", "new", "text", "mended"),
    [
        (*LEIDEN, "Moved to leiden, and likes Leiden.", "Moved to Utrecht, and likes Utrecht."),
        (*LEIDEN, "住在Leiden已经三年", "住在Utrecht已经三年"),
        ("住在莱顿", "住在乌得勒支", "用户几年前搬到莱顿", "用户几年前搬到乌得勒支"),
        ("对花生过敏", "对核桃过敏", "吃花生会起疹子", "吃核桃会起疹子"),
        ("Is 41 years old, in Leiden", "Is 42 years old, in Utrecht", "A baker in Leiden", "A baker in Leiden"),
        # Another form of the word: nobody can say how the new one is written.
        (*LEIDEN, "The user is a Leidenaar", "The user is a Leidenaar"),
        # Whole or none: neither a part of what changed, nor what would leave a part of it.
        (*ENGINEER, "Data engineer at a logistics start-up", "Data engineer at a logistics start-up"),
        (*ENGINEER, "Works as a data engineer", "Works as a data engineer"),
        (
            *ENGINEER,
            "The user works as a data engineer at a logistics company",
            "The user is a product manager at a bank",
        ),
        (*SENTENCES, "Wants at most three sentences", "Wants at most three sentences"),
        # What begins a text begins it still with a capital.
        (
            *("Prefers short answers with one example", "Prefers answers of at most three sentences"),
            *("Short answers with one example", "Answers of at most three sentences"),
        ),
        (*SENTENCES, "Answers in at most three sentences please", "Answers as long as it takes please"),
        (*LEIDEN, "Moved to Leiden, and is a Leidenaar", "Moved to Leiden, and is a Leidenaar"),
        # What goes on behind a statement whose verb changed would be said of the new one.
        *(
            ("Is vegetarian", "Eats meat", text, mended)
            for text, mended in [
                ("The user is vegetarian since 2019", "The user is vegetarian since 2019"),
                ("The user is vegetarian, and cooks", "The user eats meat, and cooks"),
                ("Lin is vegetarian.", "Lin eats meat."),
            ]
        ),
        (
            *("Prefers email over phone calls", "Wants to be called, never mailed"),
            *("Prefers email over phone calls and letters",) * 2,
        ),
        # What was only taken away leaves no gap, and what was forgotten has no new words.
        ("Walks with Tom", "Walks", "Cycles with Tom to work", "Cycles with Tom to work"),
        ("Lives in Leiden", "", "Moved to Leiden", "Moved to Leiden"),
        ("住在莱顿", "", "用户几年前搬到莱顿", "用户几年前搬到莱顿"),
    ],
)
def test_the_new_words_take_the_place_of_the_old_ones(old: str, new: str, text: str, mended: str) -> None:
    assert OldClaim(old, new).reworded(text) == mended
