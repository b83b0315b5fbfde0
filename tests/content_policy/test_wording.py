"""Which category a text falls under by its wording alone."""

import pytest

from memories import budgets
from memories.content_policy import categories, wording
from memories.content_policy.wording import Wording, Wordings
from memories.exceptions import InvalidInput, RequestTooCostly
from memories.llm.prompts import memory_update
from tests.each import each

TOPICS = Wordings(categories.wordings(categories.checked([{"name": one["name"]} for one in categories.templates()])))
OWN = Wordings(
    [
        Wording("赌博", ("赌博", "打牌赢钱"), ("经常去赌场玩", "Bets money on football matches"), ("开发纸牌游戏",)),
        Wording("crypto", ("bitcoin",), ("Owns cryptocurrency",), ("Writes articles about bitcoin",)),
    ]
)

EXAMPLES = [f"example {place} of what somebody says" for place in range(50)]


@each(
    ("text", "category"),
    [
        ("Was diagnosed with type 2 diabetes last year", "health"),
        ("Does not have diabetes", "health"),
        ("Works as a nurse and was diagnosed with cancer", "health"),
        ("我上周刚做了手术", "health"),
        ("Ich bin schwanger", "health"),
        ("Je suis allergique aux noix", "health"),
        ("У меня диабет", "health"),
        ("Had pills against pain yesterday, and Takes medicine every morning", "health"),
        ("Voted for the Labour party in the last election", "politics"),
        ("支持民主党", "politics"),
        ("My daughter goes to school in Berlin", "minors"),
        ("我女儿上三年级", "minors"),
    ],
)
def test_texts_of_a_topic_fall_under_it(text: str, category: str) -> None:
    assert TOPICS.falls_under([text]) == category


@each(
    "text",
    [
        "Is a nurse at the cancer ward", "Is a medical student", "Never talk about politics with me", "不想聊政治",
        "Lives in the Czech Republic", "Disable dark mode in screenshots", "Kind regards is how mails are signed",
        "Runs 5k every morning", "Goes hiking every weekend", "Prefers vegetarian restaurants", "在北京大学读书",
        "喜欢打篮球", "Hat eine Wohnung in Köln", "Works in a bank in Zürich", "", "…", "🙂",
    ],
)  # fmt: skip
def test_what_is_allowed_or_merely_near_falls_under_none(text: str) -> None:
    assert TOPICS.falls_under([text]) == ""


def test_a_tenants_own_category_goes_by_its_words_and_examples_and_what_is_allowed_wins() -> None:
    assert OWN.falls_under(["他每个周末都去赌场玩"]) == "赌博"
    assert OWN.falls_under(["He bets on football"]) == "赌博"
    assert OWN.falls_under(["喜欢开发纸牌小游戏"]) == ""
    assert OWN.falls_under(["Holds two Bitcoins since 2019"]) == "crypto"
    assert OWN.falls_under(["Writes an article about Bitcoin each month"]) == ""
    assert OWN.excuses("crypto", "Writes articles on bitcoin")
    assert not OWN.excuses("crypto", "Writes articles on bitcoin, and owns some cryptocurrency")


def test_without_an_embedding_examples_go_by_their_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memories.content_policy.wording._vectors", lambda _texts: None)
    own = Wordings(
        [Wording("crypto", ("bitcoin",), ("Owns cryptocurrency coins",), ("Writes articles about bitcoin",))]
    )
    assert own.falls_under(["Owns many cryptocurrency coins"]) == "crypto"
    assert own.falls_under(["Writes some articles about bitcoin"]) == ""
    assert own.falls_under(["Lives in Leiden"]) == ""


def test_categories_are_checked_completed_and_compared() -> None:
    health, own = categories.checked(
        [{"name": " Health ", "words": []}, {"name": "棋牌", "allowed": ["下围棋", "下围棋"]}]
    )
    assert (health["words"], bool(health["not_allowed"]), own["allowed"]) == ([], True, ["下围棋"])
    changed = categories.changes([own], [{**own, "description": "x"}, health])
    assert changed == {"added": ["Health"], "changed": ["棋牌"], "removed": []}
    with pytest.raises(InvalidInput) as refused:
        categories.checked([{"name": "a"}, {"name": "A", "words": ["!!"]}, {"name": ""}, {"name": "b" * 61}])
    places = [fault.pointer for fault in refused.value.faults]
    assert places == ["/categories/1/words/0", "/categories/2/name", "/categories/3/name", "/categories/1/name"]


@each("before", range(270, 305, 3))
def test_a_word_is_found_wherever_a_long_piece_is_cut(before: int) -> None:
    said = ("ab " * before)[:before] + " bitcoin " + "ab " * 200
    assert OWN.falls_under([said]) == "crypto"
    assert OWN.falls_under([said.replace("bitcoin", "bit coin")]) == ""
    assert OWN.falls_under(["天" * before + "打牌赢钱" + "天" * 300]) == "赌博"


def test_marks_and_spaces_without_end_hide_nothing_and_a_phrase_may_have_an_and() -> None:
    assert OWN.falls_under([" " * 200_000 + "," * 200_000 + "Holds two Bitcoins since 2019"]) == "crypto"
    games = Wordings([Wording("games", ("hide and seek", "Katz und Maus"))])
    assert games.falls_under(["Plays Hide and  Seek with Tom, and sings"]) == "games"
    assert games.falls_under(["Seeks a flat and hides the keys"]) == ""


def test_an_outage_of_the_embedding_is_over_when_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Wordings([Wording("crypto", (), ("Owns cryptocurrency",), ())])
    with monkeypatch.context() as out:
        out.setattr(wording, "_vectors", lambda _texts: None)
        assert own.falls_under(["Posee criptomonedas"]) == ""
    assert own.falls_under(["Posee criptomonedas"]) == "crypto"


def test_a_request_ends_before_a_text_is_judged_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    with budgets.of_request():
        assert OWN.falls_under(["Owns bitcoin"]) == "crypto"
    monkeypatch.setattr(budgets, "MOST_SECONDS", -1.0)
    with budgets.of_request(), pytest.raises(RequestTooCostly):
        OWN.falls_under(["Owns bitcoin"])


def test_a_prompt_is_told_a_bounded_part_of_a_long_policy() -> None:
    long = {"description": "d" * 1_000, "words": [], "allowed": EXAMPLES, "not_allowed": EXAMPLES}
    given = categories.checked([{"name": f"n{place}", **long} for place in range(30)])
    told = memory_update._policy(given)
    assert len(told) < memory_update.LONGEST_POLICY + 5_000
    assert all(f"- n{place}: d" in told for place in range(30))
    assert "example 0" in told
    assert "example 49" not in told
    assert "example 49" in memory_update._policy(given[:1])
