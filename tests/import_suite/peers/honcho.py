"""Conclusions in the form that Honcho's client parses its server's answers into: of two people, one of them derived."""

import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from honcho.api_types import ConclusionResponse

FOLDER = Path(os.environ["SUITE_FOLDER"])
rows = [
    ConclusionResponse(
        id=f"{who}{place}",
        content=f"Likes dish {place}",
        observer_id="bot",
        observed_id=who,
        level="explicit" if place else "deductive",
        created_at=datetime(2026, 2, 3, tzinfo=UTC),
    )
    for who in ("mara", "bo")
    for place in range(4)
]
(FOLDER / "conclusions.json").write_text(json.dumps({"items": [row.model_dump(mode="json") for row in rows]}))
json.dump(
    {"runs": [{"store": "conclusions as JSON", "given": str(FOLDER / "conclusions.json"), "rows": 8, "stored": 8}]},
    sys.stdout,
)
