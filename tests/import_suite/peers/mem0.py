"""Stores of mem0 as an application makes them: several people, an agent, a run, another speaker, an update, a
deletion. With SUITE_BACK: what the hub exported as mem0's is added by mem0 itself, and read again."""

import json
import os
import sys
from pathlib import Path

os.environ |= {"OPENAI_API_KEY": "none", "MEM0_TELEMETRY": "False", "MEM0_DIR": os.environ["SUITE_FOLDER"]}
from mem0 import Memory

FOLDER, DSN = Path(os.environ["SUITE_FOLDER"]), os.environ["SUITE_DSN"]
SIZE = 8


class Letters:
    """An embedder without a model."""

    def embed(self, text, *_, **__):
        counts = [float(sum(ord(one) % SIZE == at for one in text) + 1) for at in range(SIZE)]
        norm = sum(one * one for one in counts) ** 0.5
        return [one / norm for one in counts]

    def embed_batch(self, texts, *_, **__):
        return [self.embed(text) for text in texts]


def memory(store, name):
    config = {"vector_store": store, "history_db_path": str(FOLDER / f"{name}.db")}
    made = Memory.from_config(config)
    made.embedding_model = Letters()
    return made


def qdrant(name):
    return {
        "provider": "qdrant",
        "config": {"path": str(FOLDER / name), "on_disk": True, "embedding_model_dims": SIZE, "collection_name": name},
    }


def filled(made):
    """Rows by what is to become of them."""

    def add(text, **who):
        return made.add(text, infer=False, **who)["results"][0]["id"]

    for place in range(30):
        add(f"Bakes bread number {place} on Sundays", user_id="mara")
    add("Plays the cello", user_id="bo", agent_id="coach", metadata={"category": "skill"})
    add("Speaks Dutch", user_id="bo", run_id="r1")
    add("Was told by nobody", agent_id="coach")
    add("Belongs to a run", run_id="r1")
    old = add("Lives in Ghent", user_id="mara")
    made.update(old, "Lives in Bruges")
    made.delete(add("Has a cat", user_id="mara"))
    made.add(
        [
            {"role": "user", "content": "I sail on Mondays"},
            {"role": "assistant", "content": "I shall remind you"},
            {"role": "user", "name": "Tomas", "content": "I row on Fridays"},
        ],
        user_id="mara",
        infer=False,
    )
    return {"rows": 38, "stored": 34, "left_out": {"nobody": 2, "assistants_words": 1, "others_words": 1}}


def main():
    if back := os.environ.get("SUITE_BACK"):
        made = memory(qdrant("back"), "back")
        for one in json.loads(Path(back).read_text())["results"]:
            whose = {name: one[name] for name in ("user_id", "agent_id") if one.get(name)}
            made.add(one["memory"], infer=False, metadata=one["metadata"], **whose)
        found = made.get_all(filters={"user_id": os.environ["SUITE_USER"]}, top_k=10_000)["results"]
        return {"back": sorted(one["memory"] for one in found)}
    local = memory(qdrant("local"), "history")
    expected = filled(local)
    points, _ = local.vector_store.client.scroll("local", limit=10_000)
    (FOLDER / "points.json").write_text(json.dumps([{"id": str(one.id), "payload": one.payload} for one in points]))
    answers = [local.get_all(filters={"user_id": who}, top_k=10_000)["results"] for who in ("mara", "bo")]
    (FOLDER / "get_all.json").write_text(json.dumps({"results": [one for some in answers for one in some]}))
    runs = [
        {"store": "points of Qdrant", "given": str(FOLDER / "points.json"), **expected},
        {
            "store": "answers of get_all",
            "given": str(FOLDER / "get_all.json"),
            "rows": 36,
            "stored": 34,
            "left_out": {"assistants_words": 1, "others_words": 1},
        },
        {
            "store": "history.db",
            "given": str(FOLDER / "history.db"),
            "options": ["--user", "mara"],
            "rows": 39,
            "stored": 36,
            "left_out": {"assistants_words": 1, "deleted": 1, "others_words": 1},
        },
    ]
    if DSN:
        config = {
            "connection_string": DSN,
            "embedding_model_dims": SIZE,
            "collection_name": "mem0",
            "hnsw": False,
            "diskann": False,
        }
        filled(memory({"provider": "pgvector", "config": config}, "pg"))
        runs.append({"store": "pgvector", "given": DSN, "source": "mem0", **expected})
    return {"runs": runs}


json.dump(main(), sys.stdout)
