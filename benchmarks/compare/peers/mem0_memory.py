"""What both stores of mem0 share: a Memory without a model, and what it writes of a text."""

import hashlib
import os
from datetime import UTC, datetime

import serving

os.environ |= {"OPENAI_API_KEY": "none", "MEM0_TELEMETRY": "False", "MEM0_DIR": str(serving.FOLDER)}
from mem0 import Memory
from mem0.utils.lemmatization import lemmatize_for_bm25

NAME = "mem0"


class Mem0:
    """A peer; a store is a class that says `provider` and `config`."""

    provider = ""
    config = {}

    def __init__(self):
        own = {**self.config, "collection_name": NAME, "embedding_model_dims": serving.DIMENSIONS}
        store = {"provider": self.provider, "config": own}
        self.vectors = serving.Vectors()
        self.memory = Memory.from_config({"vector_store": store, "history_db_path": str(serving.FOLDER / "history.db")})
        self.memory.embedding_model = _LookUp(self.vectors)

    def close(self):
        self.memory.close()

    def search(self, person, question, limit):
        found = self.memory.search(question, top_k=limit, filters={"user_id": person})["results"]
        return [(one["memory"], one["score"]) for one in found]

    def add(self, person, text, key):
        self.memory.add(text, user_id=person, infer=False)

    def delete(self, person):
        self.memory.delete_all(user_id=person)

    def texts(self, person):
        found = self.memory.get_all(filters={"user_id": person}, top_k=100_000)["results"]
        return [one["memory"] for one in found]


class _LookUp:
    """An embedder that looks the vectors up."""

    def __init__(self, vectors):
        self._vectors = vectors

    def embed(self, text, *_, **__):
        return self._vectors.of(text)

    def embed_batch(self, texts, *_, **__):
        return [self._vectors.of(text) for text in texts]


def payload(person, text):
    now = datetime.now(UTC).isoformat()
    return {
        "user_id": person,
        "role": "user",
        "data": text,
        "hash": hashlib.md5(text.encode()).hexdigest(),
        "created_at": now,
        "updated_at": now,
        "text_lemmatized": lemmatize_for_bm25(text),
    }
