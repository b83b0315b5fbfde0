"""mem0 with the store that it takes by itself: Qdrant's local mode."""

import uuid
from itertools import islice

import mem0_memory
import serving

AT_ONCE = 1_000


class Store(mem0_memory.Mem0):
    provider = "qdrant"
    config = {"path": str(serving.FOLDER / "qdrant"), "on_disk": True}

    def setup(self):
        pass

    def load(self):
        """By its store's insert() in bulk; its history is left out. It has no index."""
        rows = enumerate(serving.rows())
        while some := list(islice(rows, AT_ONCE)):
            self.memory.vector_store.insert(
                vectors=[self.vectors.row(place) for place, _ in some],
                payloads=[mem0_memory.payload(person, text) for _, (person, text) in some],
                ids=[str(uuid.uuid4()) for _ in some],
            )
        return 0.0


if __name__ == "__main__":
    serving.run(Store)
