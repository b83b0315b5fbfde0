"""A life's clocks and its model."""

import logging
from collections.abc import Iterator

import pytest
from django.conf import LazySettings

from memories.llm import client
from tests.stateful import answers
from tests.stateful.clock import replace_clocks


@pytest.fixture
def simulated(db: None, settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One clock for all, and a model that answers what is drawn."""
    replace_clocks(monkeypatch)
    settings.MEMORYHUB_LLM = "scripted"
    monkeypatch.setitem(client.BACKENDS, "scripted", f"{answers.__name__}.complete")
    monkeypatch.setattr(answers, "present", answers.Model())
    # Outages are drawn all the time.
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)
