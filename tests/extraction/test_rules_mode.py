"""Memory without a model: requests, wishes and plain statements become facts in the person's own words, other
signs become suggestions."""

import time

from memories.conf import Rules
from memories.extraction import rules_mode
from memories.extraction.rules_mode import Extracted
from memories.llm.prompts.memory_update import CandidateFact
from memories.models import Category, Role, Source, Trust, Turn
from memories.reconcile import gate
from memories.reconcile.gate import Accepted, BatchEvidence
from memories.text.transcript import TranscriptTurn
from tests.each import each
from tests.tables import rows, texts

REQUESTS = rows("requests")
NO_REQUESTS = texts("no_requests")
RULES = Rules(debounce_seconds=30, max_wait_seconds=300, lease_seconds=120, max_attempts=5)


def fed(number: int, text: str, role: str = Role.USER) -> TranscriptTurn:
    return TranscriptTurn(turn=Turn(number=number, role=role, content=text), text=text)


def extract(*said: str) -> Extracted:
    return rules_mode.extract([fed(number, text) for number, text in enumerate(said, start=1)])


def asked(*said: str) -> list[str]:
    found = extract(*said)
    return [item["content"] for place, item in enumerate(found.new_facts) if place not in found.suggested]


def suggested(*said: str) -> list[tuple[str, str]]:
    found = extract(*said)
    return [
        (found.new_facts[place]["category"], found.new_facts[place]["content"]) for place in sorted(found.suggested)
    ]


def admitted(text: str) -> list[Accepted]:
    """What the gate takes of it, as an attempt would."""
    turn = fed(7, text)
    found = rules_mode.extract([turn])
    evidence = BatchEvidence(fed={7: turn}, tool_numbers=frozenset())
    return gate.admit(found.new_facts, evidence=evidence, rules=RULES, held=found.held).candidates


def test_the_tables_are_as_long_as_promised() -> None:
    assert len(REQUESTS) >= 40
    assert len(NO_REQUESTS) >= 60


@each(("text", "content"), REQUESTS)
def test_what_is_asked_for_is_kept_in_the_persons_own_words(text: str, content: str) -> None:
    assert asked(text) == [content]
    assert content in text


@each("text", NO_REQUESTS)
def test_nothing_else_is_taken_for_a_request(text: str) -> None:
    assert asked(text) == []


@each(("text", "content"), REQUESTS)
def test_the_gate_takes_a_request_with_its_quote(text: str, content: str) -> None:
    candidate, *_ = admitted(text)
    assert (candidate.content, candidate.trust, candidate.source) == (content, Trust.USER, Source.EXPLICIT)
    assert (candidate.confidence, candidate.quoted) == (0.9, 7)
    assert candidate.quote in text


@each(
    ("text", "category"),
    [
        ("Remember that I am allergic to penicillin", "constraint"),
        ("Remember that my wife is called Ana", "relationship"),
        ("Remember that I prefer tea", "preference"),
        ("Remember that I work as a nurse", "identity"),
        ("Remember that my goal is to run a marathon", "goal"),
        ("Remember that we decided to use React", "decision"),
        ("Remember to always answer in French", "preference"),
        ("Remember that my locker has the number 12", "other"),
        ("请记住我对青霉素过敏", "constraint"),
        ("请记住我喜欢喝茶", "preference"),
        ("请记住以后用中文回答我", "preference"),
    ],
)
def test_category(text: str, category: str) -> None:
    (item,) = extract(text).new_facts
    assert item["category"] == category


@each(
    ("text", "content", "category"),
    [
        # Wishes how to be answered.
        ("Always answer in French.", "Always answer in French", "preference"),
        ("From now on, call me Captain.", "From now on, call me Captain", "preference"),
        ("I moved to Leiden last month. And please keep answers short.", "please keep answers short", "preference"),
        ("Could you write to me in Dutch from now on?", "Could you write to me in Dutch from now on", "preference"),
        ("以后请用中文回答我", "以后请用中文回答我", "preference"),
        ("请用简洁幽默的语气来和我聊天", "请用简洁幽默的语气来和我聊天", "preference"),
        ("从现在开始叫我队长。", "从现在开始叫我队长", "preference"),
        # What needs no verb.
        ("Save this preference: use tabs", "use tabs", "preference"),
        ("Remember my email: ana@mail.example.", "my email: ana@mail.example", "identity"),
        ("保存这个偏好：使用制表符", "使用制表符", "preference"),
        ("记住我的邮箱 ana@mail.example", "我的邮箱 ana@mail.example", "identity"),
        ("把我的邮箱记下来：ana@mail.example", "我的邮箱：ana@mail.example", "identity"),
        # What people say of themselves.
        ("Thanks. I prefer short answers! What is a list?", "I prefer short answers", "preference"),
        ("By the way, I work as a nurse in Leiden.", "I work as a nurse in Leiden", "identity"),
        ("I moved to Leiden last month.", "I moved to Leiden last month", "identity"),
        ("My wife is called Ana.", "My wife is called Ana", "relationship"),
        ("我喜欢喝龙井茶。今天天气如何？", "我喜欢喝龙井茶", "preference"),
        ("我是一名老师。", "我是一名老师", "identity"),
        ("你好，我叫李雷，很高兴认识你。", "我叫李雷，很高兴认识你", "identity"),
        ("我搬到了莱顿。", "我搬到了莱顿", "identity"),
    ],
)
def test_wishes_and_plain_statements_are_kept(text: str, content: str, category: str) -> None:
    found = extract(text)
    kept = [(item["content"], item["category"]) for item in found.new_facts]
    assert (content, category) in kept
    assert found.suggested == frozenset()


@each(
    ("text", "expected"),
    [
        ("I think I prefer short answers.", [("preference", "I think I prefer short answers")]),
        ("My goal is to run a marathon.", [("goal", "My goal is to run a marathon")]),
        ("Let's go with PostgreSQL.", [("decision", "Let's go with PostgreSQL")]),
        ("我觉得我喜欢喝茶。", [("preference", "我觉得我喜欢喝茶")]),
        ("那就这样，我们决定用 React。", [("decision", "那就这样，我们决定用 React")]),
        # A long turn is a document.
        ("I live in Leiden. " + "It rained again. " * 60, [("identity", "I live in Leiden")]),
        ("That's wrong. Perfect!", []),
        ("I am going to be late.", []),
        ("You are a web researcher.", []),
        ("你是一名网络研究员。", []),
        ("Never give up!", []),
        ("Call me a taxi.", []),
        ("明天九点叫我起床。", []),
        ("He said I am a genius.", []),
        ("Translate: I am a teacher", []),
        ("Proofread this:\nI am a teacher. I like tea.", []),
        ("What do I like?", []),
        ("I prefer the password [redacted:password].", []),
    ],
)
def test_signs_become_suggestions(text: str, expected: list[tuple[str, str]]) -> None:
    assert suggested(text) == expected
    assert asked(text) == []


def test_a_suggestion_passes_the_gate_with_the_least_confidence() -> None:
    turn = fed(1, "I'd prefer short answers.")
    found = rules_mode.extract([turn])
    admitted = gate.admit(found.new_facts, evidence=BatchEvidence({1: turn}, frozenset()), rules=RULES)
    assert [candidate.confidence for candidate in admitted.candidates] == [RULES.min_confidence]
    assert found.suggested == {0}


def test_what_is_asked_for_is_not_also_suggested() -> None:
    assert asked("I prefer tea. Please remember that I prefer tea.") == ["I prefer tea"]
    assert suggested("I prefer tea. Please remember that I prefer tea.") == []
    assert asked("I prefer tea.", "remember that i prefer TEA") == ["i prefer TEA"]


def test_only_what_users_say() -> None:
    turns = [fed(1, "Remember that I am vegan.", Role.ASSISTANT), fed(2, "I like tea.", Role.ASSISTANT)]
    assert rules_mode.extract(turns) == Extracted([], frozenset())


def test_each_item_cites_its_turn() -> None:
    found = extract("ok", "Remember that I am vegan.", "我喜欢喝茶。")
    assert [(item["evidence"], item["quote"]) for item in found.new_facts] == [
        ([2], "Remember that I am vegan."),
        ([3], "我喜欢喝茶。"),
    ]


def test_lists_below_a_request() -> None:
    assert asked("Please remember the following:\n- I use vim\n- I live in Leiden\n\nThanks") == [
        "I use vim",
        "I live in Leiden",
    ]
    assert asked("记住以下几点：\n1. 我住在杭州\n2. 我不吃辣") == ["我住在杭州", "我不吃辣"]


def test_items_have_the_form_of_the_models() -> None:
    (item,) = extract("Remember that I am vegan.").new_facts
    candidate = CandidateFact.model_validate(item)
    assert candidate.category in Category.values
    # Rules find neither parts nor relations nor triples, and the hub compares them with a content policy itself.
    assert set(item) == set(CandidateFact.model_fields) - {"structured", "relations", "triples", "forbidden"}


def test_bounds() -> None:
    assert asked("Remember that I " + "really " * 400 + "like tea.") == []
    assert len(extract("\n".join(f"Remember that I own {n} cats." for n in range(200))).new_facts) == 50
    assert asked("Remember that my password is [redacted:password].") == []


@each(
    "unit",
    ["remember that ", "please ", "请", "记住", "I like ", "- a\n", "> a\n", "ok, ", "“", "你能", "以后", "always "],
)
def test_a_megabyte_is_read_in_bounded_time(unit: str) -> None:
    begun = time.thread_time()
    extract((unit * 1_000_000)[:1_000_000])
    assert time.thread_time() - begun < 5


@each(
    ("text", "category"),
    [
        *((f"请用简洁{comma}幽默的语气来和我聊天。", "preference") for comma in (",", "，", "、", ", ")),
        ("以后请从务实，轻松，直率的角度跟我说话", "preference"),
        ("我的 Slack 频道 ID 是 C0123456", "other"),
        ("频道ID：C0123456", "other"),
        ("My Slack channel ID is C0123456.", "other"),
        ("Our Discord channel is #ops", "other"),
        ("The Teams workspace id is 88123", "other"),
        ("The id of my Notion workspace is W12345", "other"),
        ("我的用户名是 octocat", "identity"),
        ("我的 GitHub 账号：octocat", "identity"),
        ("My Mastodon handle is @anna", "identity"),
        ("My user name is octocat", "identity"),
        ("我是Louis", "identity"),
        ("Save this preference: use tabs", "preference"),
        ("Please remember the following preference: dark mode", "preference"),
        ("保存这个偏好：用制表符缩进", "preference"),
        ("记录这个决定：用 PostgreSQL", "decision"),
        ("Note this rule: no meetings on Fridays", "constraint"),
    ],
)
def test_what_documents_say_is_worth_keeping(text: str, category: str) -> None:
    [found] = admitted(text)
    assert (found.category, found.status) == (category, "active")


@each(
    "text",
    [
        "请用这段文字,改写的语气来和我聊天", "用英文，写一首诗", "请从下面两个角度，回答我的问题", "我的用户名是什么",
        "我的账号是不是被封了", "My channel is broken", "My username is already taken", "The channel is full",
        "The team is ready", "Our server is down", "我的账号被封了", "我是Python开发者的粉丝吗",
        "我现在在路上", "我在用手机", "我好像喜欢Python",
    ],
)  # fmt: skip
def test_and_what_resembles_it(text: str) -> None:
    assert asked(text) == []
