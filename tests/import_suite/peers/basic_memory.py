"""The folder of Markdown that basic-memory's command writes, with its own bookkeeping beside it."""

import json
import os
import sys
from contextlib import redirect_stdout
from pathlib import Path

FOLDER = Path(os.environ["SUITE_FOLDER"])
os.environ["BASIC_MEMORY_HOME"] = str(FOLDER / "notes")
os.environ["BASIC_MEMORY_SEMANTIC_SEARCH_ENABLED"] = "false"
from basic_memory.cli.main import app

for title, folder in (("Trip", "travel"), ("Bread", "kitchen"), ("龙井", "tea")):
    text = f"# {title}\n\n- [fact] Likes it #tag\n"
    told = ["tool", "write-note", "--title", title, "--folder", folder, "--content", text, "--local"]
    with redirect_stdout(sys.stderr):
        app(told, standalone_mode=False)
json.dump(
    {
        "runs": [
            {
                "store": "folder",
                "given": str(FOLDER / "notes"),
                "source": "markdown",
                "options": ["--user", "mara"],
                "rows": 3,
                "stored": 3,
            }
        ]
    },
    sys.stdout,
)
