"""Terms: what counts as one in which script, how they are packed, and that stored hashes stay valid."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.scoring import terms

texts = st.text(st.characters(), max_size=300)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("The cat and the dogs", ["cat", "dog"]),
        ("What did she say about running?", ["run"]),
        ("Running, RUNS; ran!", ["run", "run", "ran"]),
        ("Maria\u2019s café", ["maria", "cafe"]),
        ("Maria's cafe\u0301", ["maria", "cafe"]),
        ("I don't", []),
        ("2,000 euros, 3.5 kg at 10:30", ["2000", "euro", "3.5", "kg", "10", "30"]),
        ("user_id in views.py", ["user", "id", "view", "py"]),
        ("Ｗｏｒｋｓ１２", ["works12"]),
        ("\u0000x\u0000", ["x"]),
        ("我喜欢红茶", ["喜", "欢", "红", "茶", "我喜", "喜欢", "欢红", "红茶"]),
        ("我们的", ["们的"]),
        ("用 Django 写", ["用", "django", "写"]),
        ("在", []),
        ("カタカナ", ["カタ", "タカ", "カナ"]),
        ("ガ", ["ガ"]),
        ("한국어", ["한국", "국어"]),
        ("ภาษา", ["ภา", "าษ", "ษา"]),
        ("Привет мир", ["привет", "мир"]),
        ("🎂🎉 party", ["🎂", "🎉", "parti"]),
        ("👍🏽", ["👍"]),
        ("a" * 500, ["a" * terms.LONGEST_WORD]),
        ("!!! ... ---", []),
    ],
)
def test_tokens(text: str, found: list[str]) -> None:
    assert list(terms.tokens(text)) == found


def test_counts_are_by_distinct_term_in_the_order_of_their_ids() -> None:
    counted = terms.count("tea, tea and the kettle; Tea")
    assert counted.length == 4
    assert dict(zip(counted.ids.tolist(), counted.counts.tolist(), strict=True)) == {
        terms.count("tea").ids[0]: 3,
        terms.count("kettle").ids[0]: 1,
    }
    assert list(counted.ids) == sorted(counted.ids)


def test_stored_terms_stay_valid() -> None:
    # Whoever changes this changes what is stored beside every turn: raise terms.VERSION.
    assert terms.VERSION == 1
    assert terms.pack("I like tea 红茶").hex(" ", -6).split() == [
        "010005000000",
        "440b53150100",
        "c19b1e750100",
        "b2d7868e0100",
        "b34063ac0100",
        "f49984ed0100",
    ]


def test_a_count_is_capped_and_the_length_is_not() -> None:
    text = "tea " * 70_000
    counted = terms.count(text)
    assert counted.counts.tolist() == [65_535]
    assert counted.length == 70_000
    assert terms.unpack(terms.pack(text)).length == 70_000


@pytest.mark.parametrize("packed", [b"", b"\x02\x00\x00\x00\x00\x00", b"\x01\x00\x00", b"\x01" + bytes(6)])
def test_what_was_not_packed_by_this_version_is_refused(packed: bytes) -> None:
    with pytest.raises(ValueError, match="version 1"):
        terms.unpack(packed)


@given(texts)
def test_any_text_is_counted_and_comes_back_from_its_bytes(text: str) -> None:
    counted = terms.count(text)
    assert counted.length == counted.counts.sum()
    back = terms.unpack(terms.pack(text))
    assert back.length == counted.length
    assert np.array_equal(back.ids, counted.ids)
    assert np.array_equal(back.counts, counted.counts)


@given(texts)
def test_folding_twice_changes_no_term(text: str) -> None:
    assert list(terms.tokens(terms.fold(text))) == list(terms.tokens(text))
