"""Token counts are those of the models' own tokenizers, also for text that breaks tiktoken."""

import threading
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import tiktoken

from memories.llm import tokenizers, tokens, vocabularies
from memories.llm.tokenizers import CONSERVATIVE, TEMPLATE_TOKENS, VOCABULARIES
from tests.each import each

BLANKS = 1_048_576
TIKTOKENS_OWN = [name for name, one in VOCABULARIES.items() if not one.package]
TEXTS = tomllib.loads((Path(__file__).parents[1] / "tables" / "token_counts.toml").read_text(encoding="utf-8"))


@each("encoding", TIKTOKENS_OWN)
@each(
    "text",
    [
        "",
        "My flight leaves at 9.",
        "我对花生过敏，请记住。",
        "<|endoftext|> and <|im_start|>",
        "👩‍👩‍👧 e\u0301",
        "\ud800 half a pair",
        "a" * 20_000,
        "的" * 20_000,
        (" " * 249_999 + "x") * 3,
    ],
)
def test_counts_as_tiktoken_does(text: str, encoding: str) -> None:
    assert tokens.count(text, encoding) == len(tiktoken.get_encoding(encoding).encode_ordinary(text))


@each("name", TEXTS)
def test_counts_as_the_models_do(name: str) -> None:
    text, expected = TEXTS[name]["text"], TEXTS[name]["counts"]
    assert {tokenizer: tokens.count(text, tokenizer) for tokenizer in expected} == expected
    assert expected.keys() == VOCABULARIES.keys() - set(TIKTOKENS_OWN)


@each("tokenizer", VOCABULARIES)
def test_special_tokens_are_plain_text(tokenizer: str) -> None:
    for special in ("<|endoftext|>", "<|im_start|>", "<start_of_turn>", "<|eot_id|>", "<｜User｜>", "[INST]", "<bos>"):
        assert tokens.count(special, tokenizer) > 1, special


@each("tokenizer", VOCABULARIES)
@each(
    ("text", "least"),
    [
        ("", 0),
        ("\ud800 half a pair", 3),
        ("a" * 20_000, 100),
        ("的" * 20_000, 100),
        ("\t " * (BLANKS // 8), 1),
        ("a" + "\u0301" * 20_000, 1_000),
        ("\x00\x07\u200d\ue000\u0378" * 1_000, 1_000),
        ("▁▁ " * 1_000, 1_000),
    ],
)
def test_hostile_text_is_counted(text: str, least: int, tokenizer: str) -> None:
    assert least <= tokens.count(text, tokenizer) <= len(text.encode("utf-8", "replace")) + len(text)


@each("text", ["\t " * (BLANKS // 2), " " * BLANKS + "x"])
def test_a_megabyte_of_blanks_is_counted(text: str) -> None:
    fewest = len(text) // 128
    assert fewest <= tokens.count(text) <= len(text)


def test_control_tiktoken_alone_does_not_survive_a_megabyte_of_blanks() -> None:
    with pytest.raises(BaseException, match="StackOverflow"):
        tiktoken.get_encoding("o200k_base").encode_ordinary(" " * BLANKS)


def test_an_unknown_encoding_is_refused() -> None:
    with pytest.raises(KeyError):
        tokens.count("text", "p50k_base")


@each("tokenizer", [*VOCABULARIES, CONSERVATIVE])
def test_threads_agree(tokenizer: str) -> None:
    text = "Grüße, 世界! 2026-03-01 " * 50
    with ThreadPoolExecutor(8) as pool:
        counts = set(pool.map(tokens.count, [text] * 64, [tokenizer] * 64))
    assert counts == {tokens.count(text, tokenizer)}


class TestConservative:
    @each("name", TEXTS)
    def test_counts_as_the_dearest_and_a_template(self, name: str) -> None:
        text = TEXTS[name]["text"]
        dearest = max(tokens.count(text, tokenizer) for tokenizer in VOCABULARIES)
        assert tokens.count(text, CONSERVATIVE) == dearest + TEMPLATE_TOKENS

    def test_without_extras_each_digit_counts(self, without_extras: None) -> None:
        assert tokens.count("2026-03-01 12345", CONSERVATIVE) == 16 + TEMPLATE_TOKENS
        text = TEXTS["hi"]["text"]
        assert tokens.count(text, CONSERVATIVE) == tokens.count(text, "cl100k_base") + TEMPLATE_TOKENS


class TestLoading:
    @pytest.fixture(autouse=True)
    def _nothing_is_loaded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(vocabularies, "_loaded", {})
        monkeypatch.setattr(tokens, "_begun", set())

    def test_many_at_once_load_it_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        loads: list[str] = []
        gate, arrived = threading.Event(), threading.Semaphore(0)

        def load(name: str) -> vocabularies.Counter:
            loads.append(name)
            gate.wait(10)
            return len

        def ask(_: int) -> int:
            arrived.release()
            return vocabularies.counter("qwen3")("four")

        monkeypatch.setattr(vocabularies, "_load", load)
        with ThreadPoolExecutor(4) as pool:
            asked = pool.map(ask, range(4))
            for _ in range(4):
                assert arrived.acquire(timeout=10)
            gate.set()
            assert set(asked) == {4}
        assert loads == ["qwen3"]

    def test_who_does_not_wait_has_it_loaded_by_another_thread_once(self) -> None:
        before = threading.active_count()
        assert not tokens.is_loaded("llama-3")
        assert not tokens.is_loaded("llama-3") or threading.active_count() <= before + 1
        for thread in threading.enumerate():
            if thread.name == "tokenizer":
                thread.join(30)
        assert tokens.is_loaded("llama-3")
        assert not vocabularies.is_loaded("qwen3")

    def test_nothing_but_what_is_asked_for_is_loaded(self) -> None:
        tokens.preload()
        assert list(vocabularies._loaded) == ["o200k_base"]


@pytest.fixture
def without_extras(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(tokenizers, "_is_installed", lambda package: False)
    tokens._behind.cache_clear()
    yield
    tokens._behind.cache_clear()
