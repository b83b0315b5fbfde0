"""Which category a text falls under by its wording alone."""

import pytest

from memories.content_policy import categories
from memories.content_policy.wording import Wording, Wordings
from memories.exceptions import InvalidInput

TOPICS = Wordings(categories.wordings(categories.checked([{"name": one["name"]} for one in categories.templates()])))
OWN = Wordings(
    [
        Wording("赌博", ("赌博", "打牌赢钱"), ("经常去赌场玩", "Bets money on football matches"), ("开发纸牌游戏",)),
        Wording("crypto", ("bitcoin",), ("Owns cryptocurrency",), ("Writes articles about bitcoin",)),
    ]
)


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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
