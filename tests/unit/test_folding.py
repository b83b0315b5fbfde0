"""Folding: the same statement compares equal, other statements do not, and hashes say nothing without the key."""

import hashlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from memories.models.folding import fold, refusal_of_key, refusal_of_text, text_digest
from tests.each import each

texts = st.text(st.characters(exclude_categories=["Cs"]))


@each(
    ("one", "other"),
    [
        ("Lives in Leiden", "lives in  LEIDEN "),
        ("Likes tea", "\tLikes\n\ntea\u3000"),
        ("Straße 12", "STRASSE 12"),
        ("café", "cafe\u0301"),
        ("Works at IBM", "Ｗｏｒｋｓ at ＩＢＭ"),
        ("ﬁnds it ½", "finds it 1\u20442"),
        ("住在杭州，喜欢喝茶", "住在杭州,喜欢喝茶"),
        ("住在 杭州", "住在\u3000杭州"),
        ("ΑΣ", "ας"),
        ("\u0345\u0308", "\u0308\u0345"),
    ],
)
def test_the_same_statement_folds_alike(one: str, other: str) -> None:
    assert fold(one) == fold(other)
    assert text_digest(one) == text_digest(other)


@each(
    ("one", "other"),
    [
        ("Allergic to peanuts", "Not allergic to peanuts"),
        ("Likes tea", "Likes tea."),
        ("Lives in Leiden", "Livesin Leiden"),
        ("喜欢猫", "不喜欢猫"),
        ("头发", "頭髮"),
        ("résumé", "resume"),
        ("5 km", "5 km²"),
        ("Owns 2 cats", "Owns 3 cats"),
    ],
)
def test_another_statement_folds_otherwise(one: str, other: str) -> None:
    assert fold(one) != fold(other)
    assert text_digest(one) != text_digest(other)


@given(texts)
def test_folding_twice_changes_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(texts)
def test_a_folded_text_has_no_blanks_to_argue_about(text: str) -> None:
    folded = fold(text)
    assert folded == " ".join(folded.split())


def test_a_digest_is_sha256_of_the_folded_text() -> None:
    assert text_digest("Lives in LEIDEN") == hashlib.sha256(b"lives in leiden").digest()


def test_refusals_are_32_bytes_that_follow_the_folded_text() -> None:
    assert len(refusal_of_text("住在杭州")) == len(refusal_of_key("knowledge", "home_city")) == 32
    assert refusal_of_text("Lives in Leiden") == refusal_of_text(" lives in LEIDEN")
    assert refusal_of_text("Lives in Leiden") != refusal_of_text("Lives in Delft")
    assert refusal_of_key("knowledge", "Home_City") == refusal_of_key("knowledge", "home_city")


def test_refusals_of_texts_and_keys_are_told_apart() -> None:
    assert refusal_of_text("knowledge home") != refusal_of_key("knowledge", "home")
    assert refusal_of_key("goal", "a b") != refusal_of_key("goal a", "b")
    assert refusal_of_key("goal", "run") != refusal_of_key("preference", "run")


def test_a_refusal_tells_nothing_without_the_hubs_key(settings: Any) -> None:
    ours = refusal_of_text("Lives in Leiden")
    assert ours != text_digest("Lives in Leiden")
    settings.MEMORYHUB_PEPPER = "another-" + "y" * 40
    assert refusal_of_text("Lives in Leiden") != ours


def test_a_refusal_outlives_the_secret_key(settings: Any) -> None:
    ours = refusal_of_text("Lives in Leiden")
    settings.SECRET_KEY = "another-" + "y" * 40
    assert refusal_of_text("Lives in Leiden") == ours
