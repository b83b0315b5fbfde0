"""Which family of languages a text belongs to."""

from memories.scoring import language
from tests.each import each


@each(
    ("text", "spoken"),
    [
        ("", "en"),
        ("I live in Leiden", "en"),
        ("我住在莱顿", "zh"),
        ("我在用 PostgreSQL 和 Django", "zh"),
        ("The word 你好 means hello in Chinese", "en"),
        ("東京に住んでいます", "zh"),
        ("저는 서울에 살아요", "zh"),
        ("Я живу в Москве", "en"),
        ("12345 !!! 🎂", "en"),
        ("红茶 123", "zh"),
        ("a word " * 200 + "茶" * 5_000, "en"),
    ],
)
def test_language(text: str, spoken: str) -> None:
    assert language.of(text) == spoken
