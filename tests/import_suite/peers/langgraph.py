"""Tables of PostgresStore and SqliteStore: several people and namespaces, a time to live, values of many forms. With
SUITE_BACK: what the hub exported is put into a store, and read again."""

import json
import os
import sys
from contextlib import ExitStack
from pathlib import Path

from langgraph.store.postgres import PostgresStore
from langgraph.store.sqlite import SqliteStore

FOLDER, DSN = Path(os.environ["SUITE_FOLDER"]), os.environ["SUITE_DSN"]


def filled(store):
    store.setup()
    for place in range(25):
        store.put(("memories", "mara"), f"k{place}", {"text": f"Grows beans of kind {place}"})
    store.put(("memories", "ann-lee"), "a", {"content": "Keeps two goats"})
    store.put(("memories", "张三"), "a", {"text": "张三住在杭州"})
    store.put(("memories", "mara"), "lm", {"kind": "Memory", "content": {"content": "Teaches the violin"}})
    store.put(("memories", "mara"), "me", {"kind": "UserProfile", "content": {"name": "Mara", "city": "Nantes"}})
    store.put(("memories", "mara"), "likes", {"food_preferences": "I like olives"})
    store.put(("memories", "mara"), "parcel", {"text": "The parcel is on the fridge"}, ttl=60 * 24)
    store.put(("memories", "mara"), "empty", {})
    store.put(("memories", "mara"), "number", {"n": 5})
    store.put(("settings", "mara"), "theme", {"text": "dark"})
    return {"rows": 34, "stored": 31, "left_out": {"no_text": 2, "other_namespace": 1}}


def main():
    with ExitStack() as stack:
        if back := os.environ.get("SUITE_BACK"):
            store = stack.enter_context(SqliteStore.from_conn_string(str(FOLDER / "back.db")))
            store.setup()
            for one in json.loads(Path(back).read_text()):
                store.put(tuple(one["namespace"]), one["key"], one["value"])
            found = store.search(("facts",), limit=10_000)
            return {"back": sorted(one.value["content"] for one in found)}
        places = [("SqliteStore", str(FOLDER / "store.db"), SqliteStore)]
        places += [("PostgresStore", DSN, PostgresStore)] if DSN else []
        runs = []
        for name, at, kind in places:
            with kind.from_conn_string(at) as store:
                expected = filled(store)
            asked = ["--namespace", "memories,{user}"]
            runs.append({"store": name, "given": at, "options": asked, **expected})
            items = ["--as", "items"]
            runs.append({"store": f"{name}, as items", "given": at, "options": items, "rows": 34, "stored": 34})
        return {"runs": runs}


json.dump(main(), sys.stdout)
