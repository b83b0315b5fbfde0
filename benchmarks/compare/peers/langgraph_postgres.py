"""LangGraph's PostgresStore with an index of vectors, as an application uses it."""

from contextlib import ExitStack

import serving
from langgraph.store.base import PutOp
from langgraph.store.postgres import PostgresStore
from psycopg.types.json import Jsonb

AT_ONCE = 1_000


class Store:
    def __init__(self):
        vectors = serving.Vectors()
        index = {
            "dims": serving.DIMENSIONS,
            "embed": lambda texts: [vectors.of(text) for text in texts],
            "fields": ["text"],
        }
        self._vectors = vectors
        self._held = ExitStack()
        pool = {"min_size": 1, "max_size": 8}
        opened = PostgresStore.from_conn_string(serving.DSN, pool_config=pool, index=index)
        self._store = self._held.enter_context(opened)

    def close(self):
        self._held.close()

    def setup(self):
        self._store.setup()

    def load(self):
        """By COPY into its tables, what put() writes; only its time is another. Seconds of the index."""
        with self._store.conn.connection() as connection:
            return serving.built_afterwards(connection, "store_vectors", lambda: self._fill(connection))

    def _fill(self, connection):
        with connection.cursor() as cursor:
            into = "COPY store (prefix, key, value) FROM STDIN (FORMAT BINARY)"
            with cursor.copy(into) as copy:
                copy.set_types(["text", "text", "jsonb"])
                for place, (person, text) in enumerate(serving.rows()):
                    copy.write_row((f"memories.{person}", str(place), Jsonb({"text": text})))
            into = "COPY store_vectors (prefix, key, field_name, embedding) FROM STDIN (FORMAT BINARY)"
            with cursor.copy(into) as copy:
                copy.set_types(["text", "text", "text", "bytea"])
                for place, (person, _) in enumerate(serving.rows()):
                    copy.write_row((f"memories.{person}", str(place), "text", self._vectors.sent(place)))
            cursor.execute("ANALYZE store")

    def search(self, person, question, limit):
        found = self._store.search(("memories", person), query=question, limit=limit)
        return [(one.value["text"], one.score) for one in found]

    def add(self, person, text, key):
        self._store.put(("memories", person), key, {"text": text})

    def delete(self, person):
        namespace = ("memories", person)
        while found := self._store.search(namespace, limit=AT_ONCE):
            self._store.batch([PutOp(namespace, one.key, None) for one in found])

    def texts(self, person):
        return [one.value["text"] for one in self._store.search(("memories", person), limit=100_000)]


serving.run(Store)
