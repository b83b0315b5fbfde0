"""Token counts are tiktoken's own, also for text that breaks tiktoken."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import tiktoken

from memories.llm import tokens

BLANKS = 1_048_576


@pytest.mark.parametrize("encoding", tokens.TOKENIZERS)
@pytest.mark.parametrize(
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
    ids=["empty", "en", "zh", "special", "emoji", "surrogate", "a", "的", "blanks"],
)
def test_counts_as_tiktoken_does(text: str, encoding: str) -> None:
    assert tokens.count(text, encoding) == len(tiktoken.get_encoding(encoding).encode_ordinary(text))


def test_special_tokens_are_plain_text() -> None:
    assert tokens.count("<|endoftext|>") > 1


@pytest.mark.parametrize("text", ["\t " * (BLANKS // 2), " " * BLANKS + "x"], ids=["tabs", "spaces"])
def test_a_megabyte_of_blanks_is_counted(text: str) -> None:
    fewest = len(text) // 128
    assert fewest <= tokens.count(text) <= len(text)


def test_control_tiktoken_alone_does_not_survive_a_megabyte_of_blanks() -> None:
    with pytest.raises(BaseException, match="StackOverflow"):
        tiktoken.get_encoding("o200k_base").encode_ordinary(" " * BLANKS)


def test_an_unknown_encoding_is_refused() -> None:
    with pytest.raises(KeyError):
        tokens.count("text", "p50k_base")


def test_threads_agree() -> None:
    tokens.warm()
    with ThreadPoolExecutor(8) as pool:
        counts = set(pool.map(tokens.count, ["Grüße, 世界! " * 50] * 64))
    assert counts == {tokens.count("Grüße, 世界! " * 50)}
