"""Identifiers: RFC 9562 version 7, in order of time, never twice."""

import time
import uuid

import pytest

from memories.models import ids
from memories.models.ids import Ticks, new_id


@pytest.fixture(autouse=True)
def _ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock that a test sets leaves nothing behind."""
    monkeypatch.setattr(ids, "_ticks", Ticks())


def test_an_id_is_a_version_7_uuid() -> None:
    made = new_id()
    assert made.version == 7
    assert made.variant == uuid.RFC_4122


@pytest.mark.parametrize("milliseconds", [0, 1_700_000_000_000, 2**48 - 1])
def test_the_first_48_bits_are_the_time(milliseconds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: milliseconds * 1_000_000 + 999_999)
    made = new_id()
    assert made.int >> 80 == milliseconds
    assert (made.version, made.variant) == (7, uuid.RFC_4122)


@pytest.mark.parametrize("step", [250, 1_000_000])
def test_a_later_one_sorts_behind(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(10**18, 10**18 + 50 * step, step))
    monkeypatch.setattr(time, "time_ns", lambda: next(clock))
    made = [new_id() for _ in range(50)]
    assert made == sorted(made)
    assert [str(one) for one in made] == sorted(str(one) for one in made)


def test_a_clock_that_is_set_back_changes_no_order(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10**18, 10**18 - 10**9, 10**18 - 1, 10**18 + 10**9])
    monkeypatch.setattr(time, "time_ns", lambda: next(clock))
    made = [new_id() for _ in range(4)]
    assert made == sorted(made)
    assert made[3].int >> 80 == (10**18 + 10**9) // 1_000_000


@pytest.mark.parametrize("bits", [0, 1, 2**62 - 1])
def test_every_random_bit_finds_its_place(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memories.models.ids.secrets.randbits", lambda count: bits)
    made = new_id()
    assert made.int & 2**62 - 1 == bits
    assert (made.version, made.variant) == (7, uuid.RFC_4122)


def test_ids_of_one_millisecond_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 10**18)
    assert len({new_id() for _ in range(10_000)}) == 10_000
