"""tiktoken finds its files without a network, whoever puts them there first."""

import hashlib
import importlib
import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FunctionType

import pytest

from memoryhub import tokenizer_cache

COUNT_WITHOUT_NETWORK = """
    import socket, sys
    from pathlib import Path

    def refuse(*args, **kwargs):
        raise OSError("the network was tried")

    socket.getaddrinfo = socket.socket.connect = socket.create_connection = refuse

    if sys.argv[1] == "seeded":
        from memoryhub import tokenizer_cache
        tokenizer_cache.seed(Path(sys.argv[2]))
    from memories.llm import tokenizers, tokens
    counts = [tokens.count("hello 世界", name) for name in tokenizers.TOKENIZERS]
    print(counts[:2], min(counts) > 0)
"""


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "of the test run")


def count_in_a_new_process(how: str, cache_dir: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(COUNT_WITHOUT_NETWORK), how, str(cache_dir)],
        env={**os.environ, "TIKTOKEN_CACHE_DIR": str(cache_dir)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_counts_with_an_empty_cache_and_no_network(tmp_path: Path) -> None:
    done = count_in_a_new_process("seeded", tmp_path)
    assert (done.returncode, done.stdout) == (0, "[2, 5] True\n"), done.stderr


def test_control_unseeded_it_would_have_gone_to_the_network(tmp_path: Path) -> None:
    done = count_in_a_new_process("bare", tmp_path)
    assert done.returncode != 0
    assert "the network was tried" in done.stderr


@pytest.mark.parametrize("encoding", tokenizer_cache._ENCODINGS, ids=lambda encoding: encoding.name)
def test_names_and_hashes_are_those_of_the_installed_tiktoken(encoding: tokenizer_cache._CachedEncoding) -> None:
    load: FunctionType = getattr(importlib.import_module("tiktoken_ext.openai_public"), encoding.name)
    constants = [constant for constant in load.__code__.co_consts if isinstance(constant, str)]
    (address,) = (constant for constant in constants if constant.startswith("https://"))
    assert encoding.cached_as == hashlib.sha1(address.encode()).hexdigest()
    assert encoding.sha256 in constants


def test_seeding_sets_the_variable_and_leaves_nothing_else(tmp_path: Path) -> None:
    tokenizer_cache.seed(tmp_path / "made" / "on the way")
    assert os.environ["TIKTOKEN_CACHE_DIR"] == str(tmp_path / "made" / "on the way")
    names = {path.name for path in (tmp_path / "made" / "on the way").iterdir()}
    assert names == {encoding.cached_as for encoding in tokenizer_cache._ENCODINGS}


def test_a_second_seeding_writes_nothing_and_a_broken_file_is_replaced(tmp_path: Path) -> None:
    first, second = (tmp_path / encoding.cached_as for encoding in tokenizer_cache._ENCODINGS)
    tokenizer_cache.seed(tmp_path)
    first.write_bytes(first.read_bytes()[:1000])
    untouched = second.stat()
    tokenizer_cache.seed(tmp_path)
    assert hashlib.sha256(first.read_bytes()).hexdigest() == tokenizer_cache._ENCODINGS[0].sha256
    assert second.stat() == untouched


def test_many_at_once(tmp_path: Path) -> None:
    seed = f"import pathlib, memoryhub.tokenizer_cache as cache; cache.seed(pathlib.Path({str(tmp_path)!r}))"
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: subprocess.run([sys.executable, "-c", seed], check=False), range(4)))
    assert [process.returncode for process in done] == [0] * 4
    assert len(list(tmp_path.iterdir())) == len(tokenizer_cache._ENCODINGS)


def test_a_file_of_another_release_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tokenizer_cache._CachedEncoding(name="o200k_base", cached_as="x", size=1, sha256="0" * 64)
    monkeypatch.setattr(tokenizer_cache, "_ENCODINGS", (other,))
    with pytest.raises(RuntimeError, match="another o200k_base"):
        tokenizer_cache.seed(tmp_path)
    assert list(tmp_path.iterdir()) == []
