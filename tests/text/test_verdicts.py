"""Cached verdicts: asked once per text, and no text stays in the process."""

import gc
import weakref

import pytest

from memories.text.injection.verdicts import cached_verdict


def test_a_text_is_judged_once_and_others_apart() -> None:
    asked: list[tuple[str, ...]] = []

    @cached_verdict(8)
    def judge(*texts: str) -> bool:
        asked.append(texts)
        return "bad" in texts

    assert [judge("bad"), judge("bad"), judge("ba", "d"), judge("b", "ad")] == [True, True, False, False]
    assert asked == [("bad",), ("ba", "d"), ("b", "ad")]


def test_what_is_raised_is_asked_again() -> None:
    @cached_verdict(8)
    def judge(*texts: str) -> bool:
        raise LookupError

    for _ in range(2):
        with pytest.raises(LookupError):
            judge("a text")


def test_the_cache_holds_no_text() -> None:
    @cached_verdict(8)
    def judge(*texts: str) -> bool:
        return True

    class Watched(str):
        """A text that a weak reference can watch."""

    text = Watched("My doctor is called Ana")
    watch = weakref.ref(text)
    judge(text)
    # The control: it is seen as long as somebody holds it.
    assert watch() == "My doctor is called Ana"
    del text
    gc.collect()
    assert watch() is None
