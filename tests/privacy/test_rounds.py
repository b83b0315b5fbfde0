"""A few rounds of an erasure amid everything; `python -m tests.privacy.rounds --rounds 50` plays many."""

import sys
from collections import Counter
from pathlib import Path

import pytest
from django.conf import LazySettings

from tests.model import install
from tests.privacy import amid

pytestmark = pytest.mark.django_db(transaction=True)


class Always(list):  # type: ignore[type-arg]
    """Answers without an end."""

    def __bool__(self) -> bool:
        return True

    def pop(self, _place: int = 0) -> object:  # type: ignore[override]
        return amid.answer


def test_nothing_is_left_or_comes_back(
    settings: LazySettings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    settings.HOME = tmp_path
    settings.MEMORYHUB_ERASURE_LEDGER = str(tmp_path / "erasures.jsonl")
    install(settings, monkeypatch).answers = Always()
    seen: Counter[str] = Counter()
    for number in range(pytestconfig.getoption("rounds") or 2):
        seen += amid.play(number, tmp_path)
        sys.stdout.write(f"round {number}: {dict(seen)}\n")
