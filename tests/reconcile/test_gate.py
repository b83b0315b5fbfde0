"""The gate: what a candidate must be, and which trust it gets."""

from datetime import timedelta
from typing import Any

import pytest

from memories.conf import Rules
from memories.models import Role, Status, Turn
from memories.reconcile import gate
from memories.reconcile.gate import Accepted, BatchEvidence, Refused
from memories.text.transcript import TranscriptTurn
from tests.each import each
from tests.model import candidate

RULES = Rules(debounce_seconds=30, max_wait_seconds=300, lease_seconds=120, max_attempts=5)
ZWJ, ZWNJ, ZWSP, RLO, TAG_A, BOM = "\u200d", "\u200c", "\u200b", "\u202e", "\U000e0041", "\ufeff"


def fed(number: int, role: str, text: str) -> TranscriptTurn:
    return TranscriptTurn(turn=Turn(number=number, role=role, content=text), text=text)


# Turn 4 is a tool's; 5 is the person's, in Chinese; 6 speaks in markup.
TURNS = [
    fed(1, Role.USER, "I live in Leiden, near the “old” mill — since 2019."),
    fed(2, Role.ASSISTANT, "Leiden is lovely."),
    fed(3, Role.USER, "And I am allergic to peanuts."),
    fed(5, Role.USER, "我住在杭州，喜欢喝龙井茶。"),
    fed(6, Role.USER, "My site uses <b>bold</b> &amp; such"),
]
EVIDENCE = BatchEvidence(fed={turn.number: turn for turn in TURNS}, tool_numbers=frozenset({4}))


def judge(raw: Any) -> Accepted | Refused:
    return gate.judge(raw, index=0, evidence=EVIDENCE, rules=RULES)


def accepted(**over: Any) -> Accepted:
    judged = judge(candidate(**over))
    assert isinstance(judged, Accepted), judged
    return judged


REFUSED: list[tuple[str, Any, str]] = [
    ("not an object", ["a", "list"], "malformed"),
    ("null", None, "malformed"),
    ("no content", candidate(content=""), "no_content"),
    ("blank content", candidate(content=" \n\t"), "no_content"),
    ("only invisible content", candidate(content=ZWSP + RLO + TAG_A), "no_content"),
    ("content is a number", candidate(content=7), "bad_content"),
    ("content is null", candidate(content=None), "bad_content"),
    ("content of 2,001 characters", candidate(content="x" * 2_001), "content_too_long"),
    ("confidence below 0.7", candidate(confidence=0.69), "low_confidence"),
    # What else is no number: tests/llm/test_memory_update.py.
    ("confidence is NaN", candidate(confidence=float("nan")), "bad_confidence"),
    ("confidence below 0", candidate(confidence=-0.1), "bad_confidence"),
    ("importance below 0.2", candidate(importance=0.19), "low_importance"),
    ("importance is NaN", candidate(importance=float("nan")), "bad_importance"),
    ("about the task", candidate(about="task"), "not_about_user"),
    ("about the assistant", candidate(about="assistant"), "not_about_user"),
    ("about somebody unknown", candidate(about="weather"), "bad_about"),
    ("temporary without an end", candidate(durability="temporary"), "transient"),
    ("temporary for no days", candidate(durability="temporary", expires_in_days=0), "transient"),
    ("temporary for minus one day", candidate(durability="temporary", expires_in_days=-1), "transient"),
    ("temporary for true days", candidate(durability="temporary", expires_in_days=True), "transient"),
    ("an upload", candidate(content="The user uploaded a file titled report.pdf"), "upload"),
    ("an upload in Chinese", candidate(content="用户上传了一份简历"), "upload"),
]


@each(("raw", "reason"), [case[1:] for case in REFUSED])
def test_refused(raw: Any, reason: str) -> None:
    assert judge(raw) == Refused(reason)


TAKEN: list[tuple[str, dict[str, Any]]] = [
    ("as given", {}),
    ("confidence 0.7 exactly", {"confidence": 0.7}),
    ("confidence is the integer 1", {"confidence": 1}),
    ("importance 0.2 exactly", {"importance": 0.2}),
    ("2,000 characters", {"content": "x" * 2_000}),
    ("temporary with an end", {"durability": "temporary", "expires_in_days": 7}),
    ("a field that nobody knows", {"mood": "sunny"}),
    ("works with files", {"content": "Works with CSV files every day"}),
    ("Chinese", {"content": "对花生过敏", "evidence": [5]}),
]


@each("over", [case[1] for case in TAKEN])
def test_taken(over: dict[str, Any]) -> None:
    assert accepted(**over)


UPLOADS = [
    "User uploaded a file",
    "The user has uploaded three CSVs for analysis.",
    "Tested the agent by uploading a test file titled 'bug_report.txt'",
    "The document the user uploaded describes a merger",
    "Two screenshots were uploaded",
    "Attached a PDF to the chat",
    "User re-uploaded report.xlsx",
    "Data lies in /mnt/user-data/uploads/a.csv",
    "The <uploaded_files> block names a spreadsheet",
    "用户上传了一个PDF文件",
    "用户刚刚上传的文档是合同",
    "已上传report.xlsx",
    "上传的文件是年度报告",
    "附件已被上传",
    "用户上传一份简历",
]
NO_UPLOADS = [
    "Works with CSV files",
    "Prefers answers as PDF",
    "Builds an upload form for his shop",
    "Is writing a service for uploading files to S3",
    "Is attached to her old camera",
    "Maintains a document store",
    "负责文件上传功能的开发",
    "经常处理CSV文件",
    "喜欢用PDF格式",
]


@each("content", UPLOADS)
def test_mention_of_an_upload_is_refused(content: str) -> None:
    assert judge(candidate(content=content)) == Refused("upload")


@each("content", NO_UPLOADS)
def test_other_words_about_files_stay(content: str) -> None:
    assert accepted(content=content).content == content


CLEANED = [
    ("bell and null", "a\x07b\x00c", "abc"),
    ("line breaks", "one\ntwo\r\n\u2028three", "one two three"),
    ("bidi override", f"abc{RLO}def\u2066g\u2069", "abcdefg"),
    ("tag characters", f"Berlin{TAG_A}\U000e007f", "Berlin"),
    ("zero-width space and BOM", f"{BOM}Ber{ZWSP}lin", "Berlin"),
    ("lone surrogate", "a\ud800b", "ab"),
    ("joiner between Latin letters", f"Ber{ZWJ}lin", "Berlin"),
    ("joiner between Chinese characters", f"杭{ZWJ}州", "杭州"),
    ("joiner at an end", f"Berlin{ZWJ}", "Berlin"),
    ("joiner in a family", "👩‍👩‍👧", "👩‍👩‍👧"),
    ("joiner after a skin tone", "👩🏽‍🚀", "👩🏽‍🚀"),
    ("joiner after a variation selector", "❤️‍🔥", "❤️‍🔥"),
    ("non-joiner in Persian", f"می{ZWNJ}خواهم", f"می{ZWNJ}خواهم"),
    ("joiner in Hindi", f"क्{ZWJ}ष", f"क्{ZWJ}ष"),
    ("marks that tell the direction", "\u05d0\u200f1", "\u05d01"),
]


@each(("said", "kept"), [case[1:] for case in CLEANED])
def test_content_is_cleaned(said: str, kept: str) -> None:
    assert accepted(content=said).content == kept


QUOTES = [
    ("verbatim", [1], "I live in Leiden", True),
    ("of something else", [1, 3], "I am allergic to peanuts", False),
    ("other case, quotes, dash and spaces", [1], 'NEAR the  "OLD" mill - since 2019', True),
    ("full width", [1], "Ｉ ｌｉｖｅ ｉｎ Ｌｅｉｄｅｎ", True),
    ("Chinese, other punctuation", [5], "我住在杭州, 喜欢喝龙井茶!", True),
    ("escaped as the prompt shows it", [6], "site uses &lt;b&gt;bold&lt;/b&gt; &amp;amp; such", True),
    ("unescaped", [6], "My site uses <b>bold</b>", True),
    ("in another turn", [3], "I live in Leiden", False),
    ("in an assistant's turn", [1, 3], "Leiden is lovely", False),
    ("invented", [1], "I live in Utrecht", False),
    ("punctuation only", [1], "—", False),
    ("one letter", [1], "I", False),
    ("empty", [1], "", False),
    ("null", [1], None, False),
]


@each(("evidence", "quote", "found"), [case[1:] for case in QUOTES])
def test_quote_is_compared_with_the_cited_user_turns(evidence: list[int], quote: str | None, found: bool) -> None:
    content = {5: "住在杭州", 6: "Uses bold letters on their site"}.get(
        evidence[0], "Lives in Leiden, near the old mill"
    )
    judged = accepted(content=content, evidence=evidence, quote=quote, confidence=0.95)
    assert judged.status == Status.ACTIVE
    if found:
        assert (judged.source, judged.confidence, judged.quoted) == ("explicit_user_input", 0.95, evidence[0])
        assert judged.quote == quote
    else:
        assert (judged.source, judged.confidence, judged.quoted) == ("implicit_inference", 0.8, None)
        assert judged.quote == ""


TRUST = [
    ("a user turn", [1], "user", "active", "implicit_inference"),
    ("two user turns", [1, 3], "user", "active", "implicit_inference"),
    ("an assistant turn", [2], "assistant", "pending", "system_generated"),
    ("user and assistant", [1, 2], "assistant", "pending", "system_generated"),
    ("a tool turn", [4], "tool", "pending", "external_data"),
    ("all three", [1, 2, 4], "tool", "pending", "external_data"),
    ("nothing", [], "assistant", "pending", "system_generated"),
    ("null", None, "assistant", "pending", "system_generated"),
    ("no list", 1, "assistant", "pending", "system_generated"),
    ("text", ["1"], "assistant", "pending", "system_generated"),
    ("outside the batch", [99], "assistant", "pending", "system_generated"),
    ("partly outside", [1, 99], "assistant", "pending", "system_generated"),
    ("a negative number", [-1], "assistant", "pending", "system_generated"),
    ("true", [True], "assistant", "pending", "system_generated"),
]


@each(("evidence", "trust", "status", "source"), [case[1:] for case in TRUST])
def test_trust_comes_from_the_cited_turns(evidence: Any, trust: str, status: str, source: str) -> None:
    judged = accepted(evidence=evidence)
    assert (judged.trust, judged.status, judged.source) == (trust, status, source)


@each(("quote", "quoted"), [("I live in Leiden", 1), ("Leiden is lovely", None)])
def test_quote_does_not_lift_what_also_rests_on_an_assistant(quote: str, quoted: int | None) -> None:
    judged = accepted(evidence=[1, 2], quote=quote)
    assert (judged.trust, judged.status, judged.confidence) == ("assistant", "pending", 0.9)
    assert judged.quoted == quoted


@each(("evidence", "cited"), [([3, 1, 1], [1, 3]), ([1, 99], [1]), ([4], [4]), ([], [2]), ([99], [2])])
def test_every_candidate_cites_turns_of_the_batch(evidence: list[int], cited: list[int]) -> None:
    assert accepted(evidence=evidence).cited == cited


FIELDS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"category": "Preference "}, {"category": "preference"}),
    ({"key": " Home_City ", "value": "Leiden"}, {"key": "home_city", "value": "Leiden"}),
    ({"key": "k" * 101, "value": "v"}, {"key": "", "value": ""}),
    ({"key": ["home"], "value": "v"}, {"key": "", "value": ""}),
    ({"key": "shoe_size", "value": 43}, {"key": "shoe_size", "value": "43"}),
    ({"key": "k", "value": "v" * 600}, {"key": "k", "value": "v" * 500}),
    ({"value": "without a key"}, {"key": "", "value": ""}),
    ({"tags": [" tea ", "tea", "", 7, "x" * 101, f"ci{ZWSP}ty"]}, {"tags": ["tea", "city"]}),
    ({"tags": [str(number) for number in range(30)]}, {"tags": [str(number) for number in range(20)]}),
    ({"tags": "tea"}, {"tags": []}),
    ({"expires_in_days": 7}, {"expires_in": timedelta(days=7)}),
    ({"expires_in_days": 10**30}, {"expires_in": None}),
    ({"source_error": f"said{RLO} Utrecht"}, {"source_error": "said Utrecht"}),
    ({"source_error": None}, {"source_error": ""}),
]


@each(("over", "kept"), FIELDS)
def test_other_fields_are_cleaned(over: dict[str, Any], kept: dict[str, Any]) -> None:
    judged = accepted(**over)
    assert {name: getattr(judged, name) for name in kept} == kept


def test_one_text_once() -> None:
    items = [candidate(text) for text in ("Lives in Leiden", "lives  in LEIDEN", "Lives in Utrecht")]
    admitted = gate.admit(items, evidence=EVIDENCE, rules=RULES)
    assert [item.content for item in admitted.candidates] == ["Lives in Leiden", "Lives in Utrecht"]
    assert +admitted.refusals == {"repeated": 1}


def test_of_one_text_the_most_trusted_statement_counts() -> None:
    items = [candidate(evidence=[2]), candidate(evidence=[1], quote="I live in Leiden"), candidate(evidence=[1])]
    (best,) = gate.admit(items, evidence=EVIDENCE, rules=RULES).candidates
    assert (best.index, best.source) == (1, "explicit_user_input")


def test_model_that_runs_wild_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    assert gate.MOST_CANDIDATES == 1_000
    monkeypatch.setattr(gate, "MOST_CANDIDATES", 10)
    admitted = gate.admit((candidate(f"Fact {n}") for n in range(13)), evidence=EVIDENCE, rules=RULES)
    assert len(admitted.candidates) == 10
    assert +admitted.refusals == {"too_many": 3}
