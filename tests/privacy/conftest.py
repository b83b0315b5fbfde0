"""What the tests of privacy share."""

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def ledger_apart(tmp_path: Path, settings: Any) -> Path:
    """The folder of the ledger of erasures, and of what else is kept apart from the database: this test's own."""
    settings.MEMORYHUB_ERASURE_LEDGER = str(tmp_path / "erasures.jsonl")
    return tmp_path
