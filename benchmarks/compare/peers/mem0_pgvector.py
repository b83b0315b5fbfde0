"""mem0 with its store on pgvector."""

import json
import uuid

import mem0_memory
import psycopg
import serving


class Store(mem0_memory.Mem0):
    provider = "pgvector"
    config = {"connection_string": serving.DSN, "maxconn": 8}

    def setup(self):
        # The first use makes the table.
        self.memory.vector_store.col_info()

    def load(self):
        """By COPY into its table, what add() writes; its history is left out. Seconds of the indexes."""
        with psycopg.connect(serving.DSN, autocommit=True) as connection:
            return serving.built_afterwards(connection, mem0_memory.NAME, lambda: self._fill(connection))

    def _fill(self, connection):
        with connection.cursor() as cursor:
            into = f"COPY {mem0_memory.NAME} (id, vector, payload) FROM STDIN (FORMAT BINARY)"
            with cursor.copy(into) as copy:
                copy.set_types(["uuid", "bytea", "bytea"])
                for place, (person, text) in enumerate(serving.rows()):
                    # Version 1 of jsonb's binary form, and its text.
                    payload = b"\1" + json.dumps(mem0_memory.payload(person, text)).encode()
                    copy.write_row((uuid.uuid4(), self.vectors.sent(place), payload))


if __name__ == "__main__":
    serving.run(Store)
