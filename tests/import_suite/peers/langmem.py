"""Memories that LangMem's tool writes: plain ones, one that is changed, one that is deleted, one with a schema."""

import json
import os
import sys
from pathlib import Path

os.environ["OPENAI_API_KEY"] = "none"
from langgraph.store.sqlite import SqliteStore
from langmem import create_manage_memory_tool
from pydantic import BaseModel

FOLDER = Path(os.environ["SUITE_FOLDER"])


class Profile(BaseModel):
    name: str
    city: str


with SqliteStore.from_conn_string(str(FOLDER / "store.db")) as store:
    store.setup()
    tool = create_manage_memory_tool(namespace=("memories", "{user_id}"), store=store)
    schema = create_manage_memory_tool(namespace=("memories", "{user_id}"), store=store, schema=Profile)
    for who in ("mara", "bo"):
        config = {"configurable": {"user_id": who}}
        for place in range(5):
            tool.invoke({"content": f"Likes dish number {place}"}, config=config)
        said = tool.invoke({"content": "Lives in Ghent"}, config=config)
        key = said.split()[-1]
        tool.invoke({"content": "Lives in Bruges", "action": "update", "id": key}, config=config)
        gone = tool.invoke({"content": "Has a cat"}, config=config).split()[-1]
        tool.invoke({"action": "delete", "id": gone}, config=config)
        schema.invoke({"content": Profile(name=who, city="Nantes")}, config=config)
json.dump(
    {
        "runs": [
            {
                "store": "SqliteStore",
                "given": str(FOLDER / "store.db"),
                "options": ["--namespace", "memories,{user}"],
                "rows": 14,
                "stored": 14,
            }
        ]
    },
    sys.stdout,
)
