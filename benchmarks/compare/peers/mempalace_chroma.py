"""MemPalace with the store that it takes by itself: a palace in ChromaDB."""

import os
from itertools import islice

import serving

PALACE, ROOM, AT_ONCE = str(serving.FOLDER / "palace"), "memories", 1_000
os.environ |= {
    "MEMPALACE_PALACE_PATH": PALACE,
    "MEMPALACE_EMBEDDING_MODEL": "openai-compat",
    # Nobody answers there, and nobody is asked.
    "MEMPALACE_EMBEDDING_API_URL": "http://127.0.0.1:9",
    "MEMPALACE_EMBEDDING_API_MODEL": "ground",
    "ANONYMIZED_TELEMETRY": "False",
}
from mempalace import embedding, mcp_server, palace
from mempalace.ids import make_drawer_id_from_content
from mempalace.searcher import search_memories

# The most that its tools take at once.
LISTED, DELETED = 100, 500


class Store:
    def __init__(self):
        vectors = serving.Vectors()

        def looked_up(self, input):  # noqa: A002 (ChromaDB wants these names)
            return [vectors.of(text) for text in input]

        embedding.OpenAICompatEmbeddingFunction.__call__ = looked_up

    def close(self):
        pass

    def setup(self):
        palace.get_collection(PALACE)

    def load(self):
        """By its collection's upsert() in bulk, what the tool writes. Its index grows with each."""
        drawers, rows = palace.get_collection(PALACE), serving.rows_in_time()
        while some := list(islice(rows, AT_ONCE)):
            drawers.upsert(
                ids=[make_drawer_id_from_content(person, ROOM, text) for person, text in some],
                documents=[text for _, text in some],
                metadatas=[_metadata(person) for person, _ in some],
            )
        return 0.0

    def search(self, person, question, limit):
        found = _of(search_memories(question, PALACE, wing=person, n_results=limit))
        return [(one["text"], one["similarity"]) for one in found["results"]]

    def add(self, person, text, key):
        _of(mcp_server.tool_add_drawer(person, ROOM, text))

    def delete(self, person):
        ids = [one["drawer_id"] for one in _listed(person)]
        for first in range(0, len(ids), DELETED):
            done = _of(mcp_server.tool_delete_drawers(ids[first : first + DELETED]))
            if done["errors"]:
                raise RuntimeError(f"{done['errors']} drawers could not be deleted.")

    def texts(self, person):
        return [one["content_preview"] for one in _listed(person)]


def _metadata(person):
    return {
        "wing": person,
        "room": ROOM,
        "source_file": "",
        "added_by": "compare",
        "filed_at": "2026-01-01T00:00:00",
        "chunk_index": 0,
    }


def _listed(person):
    found = []
    while True:
        page = _of(mcp_server.tool_list_drawers(wing=person, limit=LISTED, offset=len(found)))
        found += page["drawers"]
        if len(found) >= page["total"]:
            return found


def _of(answer):
    if error := answer.get("error"):
        raise RuntimeError(error)
    return answer


if __name__ == "__main__":
    serving.run(Store)
