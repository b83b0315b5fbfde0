"""Looking for secrets: bounded for a request, and its short cuts find what the plain way finds."""

import random
import re
from typing import Any

import pytest

from memories.exceptions import TooManySecrets
from memories.text.secrets import effort, fields, redaction
from memories.text.secrets import phrases as secret_phrases
from memories.text.secrets.redaction import redact_text
from tests.tables import rows, texts

SHAPES = [
    "pw ",
    "pw: ",
    "pw is ",
    "password is password is ",
    "key=key=",
    "api_key=",
    "token: ",
    "密码",
    "密码是",
    "我的密码 ",
    "-----BEGIN RSA PRIVATE KEY-----\n",
    "eyJ",
    "eyJhbGciOi.",
    "http://a:b@",
    "://a:",
    "sk-",
    "AKIA",
    "ghp_",
    "a1b2c3 is pw ",
    "user x, pw ",
    "--password ",
    "seed phrase is abandon ability ",
    "pw=a&",
    'secret=" ',
    "ABCDEFGHabcdefgh0123456789+/",
    "token=a1b2&",
    "'secret':'x1y2',",
    "x.token=y.token=",
    "pw='",
]


def spent(text: str) -> int:
    """How many places were looked at."""
    with effort.bounded():
        before = effort.left() or 0
        redact_text(text)
        return before - (effort.left() or 0)


@pytest.mark.parametrize("unit", SHAPES)
def test_twice_the_text_is_twice_the_work(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort, "MOST_PLACES", 10**9)
    once, twice = (spent(unit * (size // len(unit))) for size in (5_000, 10_000))
    assert 0 < once <= 5_000 * 3
    assert twice <= 2.6 * once


def test_a_megabyte_is_looked_through_and_more_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "pw " * 1_000
    assert spent(text) * 1_000_000 / len(text) < effort.MOST_PLACES
    monkeypatch.setattr(effort, "MOST_PLACES", 2_500)
    with effort.bounded():
        assert [redact_text(text) for _ in range(2)] == [(text, 0)] * 2
        with pytest.raises(TooManySecrets):
            redact_text(text)


def test_many_small_texts_count_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort, "MOST_PLACES", 100)
    with effort.bounded():
        assert [redact_text("a") for _ in range(100)] == [("a", 0)] * 100
        with pytest.raises(TooManySecrets):
            redact_text("a")


def test_outside_of_a_request_nothing_is_counted() -> None:
    assert effort.left() is None
    assert redact_text("My password is Tr0ub4dor-9x.")[1] == 1
    with effort.bounded():
        assert effort.left() == effort.MOST_PLACES
    assert effort.left() is None


# --- The plain way: what the short cuts stand for --------------------------------------------------------------------
ALL = tuple(secret_phrases._KEYWORDS)
LENGTHS = sorted({len(word) for word in ALL}, reverse=True)
NOT_NEAR_AFTER = re.compile(r"(?:忘记|忘了|重置|修改|找回|输入|重设|更改|设置|无)\Z")


def plain_place(text: str, lower: str, end: int, _: Any) -> Any:
    if text[end - 1].isascii() and text[end : end + 1].isascii() and text[end : end + 1].isalpha():
        return None
    tail = lower[max(0, end - 2 * LENGTHS[0]) : end]
    joined = tail.replace(" ", "").replace("_", "").replace("-", "")
    if not joined.endswith(ALL):
        return None
    word = next(joined[-length:] for length in LENGTHS if joined[-length:] in ALL)
    start = end
    for letter in reversed(word):
        start = lower.rindex(letter, 0, start)
    before = text[start - 1 : start] if start else ""
    joins = before.isascii() and before.isalnum() and text[start].isascii()
    if joins and not (before.islower() and text[start].isupper()):
        return None
    return secret_phrases._KeywordPlace(secret_phrases._KEYWORDS[word], start, end, text)


def plain_may_be_near(place: Any) -> bool:
    if place.text[place.end - 1].isascii():
        return bool(secret_phrases._NEAR_AFTER.search(place.before))
    return not NOT_NEAR_AFTER.search(place.before)


LINE_BEGINS = re.compile(rf"(?:\A|\n){fields._LINE_BEGINS.pattern}")
LABEL_BEGINS = re.compile(rf"(?:\A|\n){fields._LABEL_BEGINS.pattern}")
NO_SECRET = re.compile(rf"(?:{'|'.join(fields._NO_SECRET)})[ _.-]?\Z", re.IGNORECASE)


def plain_form_on_line(before: str, name: str, is_assigned: bool, is_tight: bool) -> str:
    begins = bool(LINE_BEGINS.search(before)) or before.endswith(('"', "'", "`"))
    if is_assigned and name.isupper() and (begins or is_tight):
        return "env"
    if begins or not name.isascii():
        return "line"
    if LABEL_BEGINS.search(before):
        return "label"
    return "inline" if " " not in name and (is_tight or before.rstrip().endswith(fields._IN_FLOW)) else ""


LINES = [
    "pw password pwd 密码 口令 pin otp api key token secret is was to for my",
    "the user login account 账号 用户 uſer -- : = := -> | ' \" (",
    ") as set change 忘记 输入 修改 无 1234 a1b2c3 hunter2 Xk9!pq ab;cd 834721 abandon PW",
    "API_KEY dbPassword _ - 。 ， ： 是 为 的 我 “ ” ｐｗ eyJ sk-",
    "AKIA :// @ x:y@ http:// seed phrase bearer Basic curl -u",
]
FIELDS = [
    "|\n|  - |export |# |OpenAI |My own |the |{\"|'|?|&|(|page_|next |max-|superper|foo.bar-|$env:",
    "token|Token|API_KEY|api key|password|secret|DB_PASSWORD|access-token|密码",
    '=|: |": "|\' : \'| = |=>|="|: Bearer |:\n',
    "a1b2c3|deadbeef|x1-y2|1234567|foo_bar|foo.bar1|AbcDef|ZXCVBNMA|0x12ab|sha256|…",
    "| |\n|, |\"|'|&b=c| # x|...| and more",
]
WORDS = [*" ".join(LINES).split(), "\n", "\t"]


def generated(seed: int, count: int) -> list[str]:
    """Texts of the tables, and what comes of cutting and mixing them."""
    chance = random.Random(seed)
    known = [
        *(re.sub("[⟦⟧]", "", marked) for _, marked in rows("secrets")),
        *texts("harmless"),
        *texts("harmless_fields"),
    ]
    made = list(known)
    made += ["".join(chance.choice(line.split("|")) for line in FIELDS) for _ in range(4 * count)]
    for _ in range(count):
        one, other = chance.choice(known), chance.choice(known)
        place = chance.randrange(len(one) + 1)
        made.append(one[:place] + chance.choice(WORDS) + one[place:])
        made.append(one[place:] + chance.choice([" ", ", ", "\n", ""]) + other[: chance.randrange(len(other) + 1)])
        made.append("".join(chance.choice(WORDS) + chance.choice(["", " ", "_"]) for _ in range(chance.randint(2, 14))))
    return made


def test_the_short_cuts_find_what_the_plain_way_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    made = generated(seed=7, count=500)
    found = [redact_text(text) for text in made]
    monkeypatch.setattr(secret_phrases, "_place", plain_place)
    monkeypatch.setattr(secret_phrases, "_may_be_near", plain_may_be_near)
    monkeypatch.setattr(fields, "_form_on_line", plain_form_on_line)
    monkeypatch.setattr(fields, "_names_no_secret", lambda name: bool(NO_SECRET.search(name)))
    monkeypatch.setattr(secret_phrases, "_has_clue", lambda text: bool(secret_phrases._CLUES.search(text)))
    assert [redact_text(text) for text in made] == found
    assert sum(count > 0 for _, count in found) > 800


def test_places_lie_less_dense_than_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the first ones: no text says "password" more often than it has room for it."""
    monkeypatch.setattr(effort, "FREE_PLACES", 100)
    with effort.bounded():
        redact_text("my password, my token, my key; " * 300)
    with effort.bounded(), pytest.raises(TooManySecrets):
        redact_text("pw " * 300)


def test_only_the_examination_of_places_takes_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]

    def passing() -> float:
        clock[0] += 0.01
        return clock[0]

    monkeypatch.setattr(effort, "thread_time", passing)
    monkeypatch.setattr(effort, "MOST_SECONDS", 0.5)
    with effort.bounded():
        # One place each: as many texts as one likes.
        for _ in range(20):
            redact_text("the password")
            clock[0] += 100.0
    with effort.bounded(), pytest.raises(TooManySecrets):
        redact_text("the password, " * 60)


def test_what_is_foreseen_is_at_least_what_it_takes() -> None:
    for shape in SHAPES:
        text = shape * 200
        with effort.bounded():
            redaction.foresee([text])
            foreseen = effort.MOST_PLACES - (effort.left() or 0)
        assert foreseen >= spent(text) * 0.5, shape
