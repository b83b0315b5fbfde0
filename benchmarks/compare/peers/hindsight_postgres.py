"""Hindsight's engine on PostgreSQL, without a language model."""

import os
import re
from http import HTTPStatus
from itertools import groupby, islice

import serving

os.environ |= {
    "HINDSIGHT_API_LLM_PROVIDER": "none",
    "HINDSIGHT_API_RERANKER_PROVIDER": "rrf",
    # It is named, and not asked: the vectors are looked up.
    "HINDSIGHT_API_EMBEDDINGS_PROVIDER": "openai",
    "HINDSIGHT_API_DB_POOL_MAX_SIZE": "8",
    "HINDSIGHT_API_LOG_LEVEL": "warning",
}
from hindsight_api import Embeddings, MemoryEngine
from hindsight_api.extensions import OperationValidationError
from hindsight_api.models import RequestContext

AT_ONCE = 200
# What it puts behind a text for its vector.
_DATED = re.compile(r" \(happened (?:in|from) [^()]*\)$")


class LookUp(Embeddings):
    provider_name, dimension = "ground", serving.DIMENSIONS

    def __init__(self):
        self._vectors = serving.Vectors()

    async def initialize(self):
        pass

    async def encode(self, texts):
        return [self._vectors.of(_DATED.sub("", text)) for text in texts]


class Store:
    def __init__(self):
        self._run = serving.Loop().run
        self._who = RequestContext()
        self._engine = self._run(self._opened())

    async def _opened(self):
        engine = MemoryEngine(db_url=serving.dsn_as_url(), embeddings=LookUp())
        await engine.initialize()
        return engine

    def close(self):
        self._run(self._engine.close())

    def setup(self):
        """Its tables were made when it was opened."""

    def load(self):
        """By its own batches; its indexes grow with each."""
        rows = enumerate(serving.rows_in_time())
        for person, own in groupby(rows, key=lambda row: row[1][0]):
            while some := list(islice(own, AT_ONCE)):
                contents = [{"content": text, "document_id": f"row-{place}"} for place, (_, text) in some]
                self._run(self._engine.retain_batch_async(person, contents, request_context=self._who))
        return 0.0

    def search(self, person, question, limit):
        found = self._of_a_bank(self._engine.recall_async(person, question, request_context=self._who))
        return [(one.text, 1 / (1 + place)) for place, one in enumerate(found.results[:limit])] if found else []

    def add(self, person, text, key):
        self._run(self._engine.retain_async(person, text, document_id=key, request_context=self._who))

    def delete(self, person):
        self._run(self._engine.delete_bank(person, request_context=self._who))

    def texts(self, person):
        found, total = [], 1
        while len(found) < total:
            asked = self._engine.list_memory_units(person, limit=1_000, offset=len(found), request_context=self._who)
            page = self._of_a_bank(asked)
            if page is None:
                return []
            total = page["total"]
            found += [one["text"] for one in page["items"]]
        return found

    def _of_a_bank(self, asked):
        """None where there is no such bank: one that was deleted, or never made, is no empty one."""
        try:
            return self._run(asked)
        except OperationValidationError as error:
            if error.status_code == HTTPStatus.NOT_FOUND:
                return None
            raise


if __name__ == "__main__":
    serving.run(Store)
