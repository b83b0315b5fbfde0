"""Files that deepagents' backends write: in a store, and in a folder with what an agent keeps beside them."""

import json
import os
import sys
from pathlib import Path

os.environ["ANTHROPIC_API_KEY"] = "none"
from deepagents.backends import FilesystemBackend, StoreBackend
from langgraph.store.sqlite import SqliteStore

FOLDER = Path(os.environ["SUITE_FOLDER"])

with SqliteStore.from_conn_string(str(FOLDER / "store.db")) as store:
    store.setup()
    for who in ("mara", "bo"):
        backend = StoreBackend(store=store, namespace=lambda *_, who=who: (who, "filesystem"))
        backend.write("/AGENTS.md", "# Notes\nLikes tea")
        backend.write("/trips/leiden.md", "Friday")
        backend.edit("/AGENTS.md", "tea", "coffee")
        backend.write("/.env", "KEY=none")
    store.put(("memories", "mara"), "a", {"text": "Not a file"})
agents = FOLDER / "agents"
agents.mkdir()
backend = FilesystemBackend(root_dir=str(agents), virtual_mode=True)
for name in ("coach", "writer"):
    backend.write(f"/{name}/AGENTS.md", "# Notes")
    backend.write(f"/{name}/memory/goals.md", "Run a marathon")
    backend.write(f"/{name}/skills/web/SKILL.md", "# Web")
    backend.write(f"/{name}/.state/auth.json", "{}")
json.dump(
    {
        "runs": [
            {
                "store": "StoreBackend in a SqliteStore",
                "given": str(FOLDER / "store.db"),
                "source": "deepagents",
                "options": ["--namespace", "{user},filesystem"],
                "rows": 7,
                "stored": 4,
                "left_out": {"hidden": 2, "other_namespace": 1},
            },
            {
                "store": "folder",
                "given": str(agents),
                "options": ["--user", "mara"],
                "rows": 8,
                "stored": 4,
                "left_out": {"hidden": 2, "no_memory": 2},
            },
        ]
    },
    sys.stdout,
)
