"""Profiles in the form that Memobase's client parses its server's answers into."""

import json
import os
import sys
import uuid
from datetime import UTC, datetime
from pathlib import Path

from memobase.core.user import UserProfileData

FOLDER = Path(os.environ["SUITE_FOLDER"])
at = datetime(2026, 2, 3, tzinfo=UTC)
rows = [
    UserProfileData(
        id=uuid.uuid4(), content=text, attributes={"topic": topic, "sub_topic": part}, created_at=at, updated_at=at
    )
    for topic, part, text in (
        ("basic_info", "city", "Nantes"),
        ("interest", "music", "the cello"),
        ("work", "title", ""),
    )
]
(FOLDER / "profiles.json").write_text(json.dumps({"profiles": [row.model_dump(mode="json") for row in rows]}))
json.dump(
    {
        "runs": [
            {
                "store": "profiles as JSON",
                "given": str(FOLDER / "profiles.json"),
                "options": ["--user", "mara"],
                "rows": 3,
                "stored": 2,
                "left_out": {"no_text": 1},
            }
        ]
    },
    sys.stdout,
)
