"""The cache: what it keeps, what it evicts first, and that it counts no weight twice."""

import threading
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from memories.exceptions import HubBusy
from memories.retrieval.cache import FOR_EVER, Indexes, LRUCache, Patience, Source
from tests.database import PATIENCE


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Its only element is the time in seconds."""
    now = [0.0]
    monkeypatch.setattr("memories.retrieval.cache.time.monotonic", lambda: now[0])
    return now


def words(capacity: int = 10) -> LRUCache[str]:
    return LRUCache(capacity=capacity, idle_seconds=60, weigh=len)


def test_what_was_put_last_is_there() -> None:
    kept = words()
    assert kept.get("a") is None
    kept.put("a", "old")
    kept.put("a", "new")
    assert kept.get("a") == "new"


def test_the_least_recently_used_goes_first() -> None:
    kept = words()
    for key in "abc":
        kept.put(key, "xxx")
    kept.get("a")
    kept.put("d", "xxx")
    assert [key for key in "abcd" if kept.get(key)] == ["a", "c", "d"]


def test_replacing_makes_room() -> None:
    kept = words()
    for _ in range(20):
        kept.put("a", "xxxxxxxxx")
    kept.put("b", "x")
    assert (kept.get("a"), kept.get("b")) == ("xxxxxxxxx", "x")


def test_nothing_heavier_than_the_cache() -> None:
    kept = words()
    kept.put("a", "x")
    kept.put("b", "x" * 11)
    assert (kept.get("a"), kept.get("b")) == ("x", None)


def test_what_lies_idle_goes(clock: list[float]) -> None:
    kept = words()
    kept.put("a", "x")
    kept.put("b", "x")
    clock[0] = 59
    assert kept.get("b") == "x"
    clock[0] = 61
    assert (kept.get("a"), kept.get("b")) == (None, "x")


def test_what_lies_idle_goes_though_nobody_asks(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[float] = []
    monkeypatch.setattr(LRUCache, "_schedule", lambda _, seconds: looks.append(seconds))
    kept = words()
    kept.put("a", "x")
    clock[0] = 20
    kept.put("b", "x")
    clock[0] = 60
    kept.evict_idle()
    assert (len(kept), looks[-1]) == (1, 20)
    clock[0] = 80
    kept.evict_idle()
    assert len(kept) == 0


def test_it_is_looked_at_by_a_thread_of_its_own() -> None:
    kept: LRUCache[str] = LRUCache(capacity=10, idle_seconds=0.01, weigh=len)
    kept.put("a", "x")
    assert kept._timer
    kept._timer.join(30)
    assert len(kept) == 0


class SlowToEnd:
    """A timer whose thread lives on for a moment after it has looked."""

    made: ClassVar[list["SlowToEnd"]] = []

    def __init__(self, seconds: float, look: Callable[[], None]) -> None:
        self.seconds, self.look, self.daemon = seconds, look, False
        self.made.append(self)

    def start(self) -> None: ...

    def is_alive(self) -> bool:
        return True


def test_what_is_put_while_the_thread_ends_is_looked_at_as_well(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memories.retrieval.cache.threading.Timer", SlowToEnd)
    monkeypatch.setattr(SlowToEnd, "made", [])
    kept = words()
    kept.put("a", "x")
    kept.put("b", "x")
    assert len(SlowToEnd.made) == 1
    clock[0] = 60
    SlowToEnd.made[0].look()
    assert (len(kept), len(SlowToEnd.made)) == (0, 1)
    kept.put("c", "x")
    assert [timer.seconds for timer in SlowToEnd.made] == [60, 60]
    clock[0] = 120
    SlowToEnd.made[1].look()
    assert len(kept) == 0


class Dots(Source[int, str]):
    """An index that is a dot longer than the one before."""

    kind = "facts"

    def __init__(
        self, name: str, stamp: int, patience: Patience = FOR_EVER, meanwhile: Callable[[], Any] = int
    ) -> None:
        self.name, self.now, self.patient, self.meanwhile = name, stamp, patience, meanwhile

    @property
    def key(self) -> tuple[str]:
        return (self.name,)

    def stamp(self, _known: int | None) -> int:
        return self.now

    def make(self, _stamp: int, kept: str | None, _seconds: float | None) -> str:
        self.meanwhile()
        return f"{kept or ''}."

    def weight(self, index: str) -> int:
        return len(index)

    def patience(self, _stamp: int, _kept: str | None) -> Patience:
        return self.patient


def test_an_index_is_made_again_of_what_was_kept_for_another_stamp_or_key() -> None:
    indexes = Indexes(capacity=10, idle_seconds=60)
    asked = [indexes.open(Dots(*one)) for one in (("a", 1), ("a", 1), ("a", 2), ("b", 2), ("a", 2))]
    assert asked == [".", ".", "..", ".", ".."]


def test_who_has_no_patience_does_not_wait_for_another_maker() -> None:
    indexes = Indexes(capacity=10, idle_seconds=60)
    refused: list[Patience] = []

    def meanwhile() -> None:
        for patience in (Patience(0.01), Patience(60, 0), Patience(60, 0, beside=True)):
            with pytest.raises(HubBusy):
                indexes.open(Dots("a", 1, patience))
            refused.append(patience)
        # Another's index is no concern of theirs.
        assert indexes.open(Dots("b", 1, Patience(0.01, 0))) == "."

    assert indexes.open(Dots("a", 1, meanwhile=meanwhile)) == "."
    assert len(refused) == 3
    assert indexes.open(Dots("a", 1, Patience(0.01, 0))) == "."
    assert indexes._makers == {}


def test_what_takes_long_goes_on_without_who_asked() -> None:
    indexes, go_on = Indexes(capacity=10, idle_seconds=60), threading.Event()
    long = Dots("a", 1, Patience(0.01, 0, beside=True), lambda: go_on.wait(PATIENCE))
    for _ in range(2):
        with pytest.raises(HubBusy):
            indexes.open(long)
    [maker] = [thread for thread in threading.enumerate() if thread.name == "index"]
    go_on.set()
    maker.join(PATIENCE)
    assert indexes.open(long) == "."
    assert indexes.open(Dots("a", 2, Patience(PATIENCE, 0, beside=True))) == ".."
