"""The folder of Markdown that basic-memory's command writes, with its own bookkeeping beside it."""

import json
import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(os.environ["SUITE_FOLDER"])
os.environ["BASIC_MEMORY_HOME"] = str(FOLDER / "notes")
PROGRAM = str(Path(sys.executable).with_name("basic-memory"))
for title, folder in (("Trip", "travel"), ("Bread", "kitchen"), ("龙井", "tea")):
    text = f"# {title}\n\n- [fact] Likes it #tag\n"
    told = ["tool", "write-note", "--title", title, "--folder", folder, "--content", text, "--local"]
    subprocess.run([PROGRAM, *told], check=True, capture_output=True, timeout=200)
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
