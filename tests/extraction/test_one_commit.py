"""Results and watermark are one commit: without the one there is not the other (rules.md, 2.4)."""

from typing import Any

import pytest

from memories.models import EndUser, ExtractionRun, Fact
from memories.queue import session_queue
from tests.extraction.test_consolidation import consolidate, due, queue_of
from tests.model import Model, candidate


def test_a_worker_that_dies_before_the_watermark_moves_leaves_no_result(
    model: Model, person: EndUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    session = due(person)
    with monkeypatch.context() as patch:
        patch.setattr(session_queue, "finish", die)
        model.say(candidate())
        with pytest.raises(ZeroDivisionError):
            consolidate(session)
    assert not Fact.objects.exists()
    assert (queue_of(session).extracted_number, ExtractionRun.objects.get().status) == (0, "failed")
