"""Code in fences: found by its words, without hiding what is told beside it (docs/retrieval.md)."""

from hypothesis import given
from hypothesis import strategies as st

from memories.scoring import code, terms
from memories.scoring.ranking import Query, score
from tests.each import each
from tests.scoring.stores import units

BLOCK = "```python\ndef login(user):\n    return user\n```"


@each(
    ("text", "prose"),
    [
        (f"Why does this fail?\n{BLOCK}\nIt worked on Monday.", "Why does this fail? It worked on Monday."),
        (f"First\n{BLOCK}\nthen\n{BLOCK}\nlast", "First then last"),
        ("A list:\n  ~~~\n  ```\n  ~~~\ndone", "A list: done"),
        ("Cut off:\n```js\nlet a = 1;", "Cut off:"),
        ("Windows:\r\n```\r\nx = 1\r\n```\r\nthe end", "Windows: the end"),
        # No fences: code in a line, and marks that open no line of their own.
        ("Use `x = 1` or ```y``` here", "Use `x = 1` or ```y``` here"),
        ("I like tea ~~~ and cake", "I like tea ~~~ and cake"),
        # Nothing is told: the code is all there is.
        (BLOCK, " ".join(BLOCK.split())),
    ],
)
def test_what_is_told_stands_outside_the_fences(text: str, prose: str) -> None:
    assert code.prose(text).split() == prose.split()


@given(st.text(st.sampled_from("`~\n a\r"), max_size=60))
def test_a_text_is_told_or_code(text: str) -> None:
    parts = code.apart(text)
    assert sorted("".join(parts).replace("\n", "")) == sorted(text.replace("\n", ""))


def test_words_of_the_code_alone_count_once() -> None:
    counted = terms.count("my login\n```\nlogin cookie cookie cookie\n```")
    assert dict(zip(counted.ids.tolist(), counted.counts.tolist(), strict=True)) == {
        int(terms.count(word).ids[0]): 1 for word in ("login", "cookie")
    }
    assert counted.length == 2
    # Outside of fences each time counts.
    assert terms.count("login cookie cookie cookie").length == 4


def test_a_turn_with_long_code_is_found_by_what_it_tells_and_by_its_code() -> None:
    long_code = "```\n" + "row = fetch(cursor)\n" * 200 + "```"
    store = units([f"The budget page is slow\n{long_code}", "The budget page is slow " + "fetch cursor row " * 200])
    fenced, plain = score(store, [Query.of("slow budget page")]).total
    assert fenced > 2 * plain
    assert score(store, [Query.of("cursor")]).total[0] > 0
