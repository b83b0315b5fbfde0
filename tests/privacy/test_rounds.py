"""A few rounds of an erasure amid everything; `python -m tests.privacy.rounds --rounds 50` plays many."""

import sys
from collections import Counter
from pathlib import Path

import pytest
from django.conf import LazySettings

from tests.pipeline.model import install
from tests.privacy import rounds as playing

pytestmark = pytest.mark.django_db(transaction=True)
FEW, SEED = 4, 20_261_122


class Always(list):  # type: ignore[type-arg]
    """Answers without an end."""

    def __bool__(self) -> bool:
        return True

    def pop(self, _place: int = 0) -> object:  # type: ignore[override]
        return playing.answer


def test_nothing_is_left_or_comes_back(
    settings: LazySettings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    settings.HOME = tmp_path
    settings.MEMORYHUB_ERASURE_LEDGER = str(tmp_path / "erasures.jsonl")
    install(settings, monkeypatch).answers = Always()
    many, seed = request.config.stash.get(playing.MANY, (FEW, SEED))
    seen: Counter[str] = Counter()
    for number in range(many):
        seen += playing.play(number, seed, tmp_path)
    sys.stdout.write(f"{many} rounds of seed {seed}: {dict(seen)}\n")
    # Each was at work, or the rounds show nothing.
    assert all(seen[what] for what in ("posted", "extracted", "embedded", "PersonRestricted", "Erased")), seen
