"""Graphiti on Kuzu: rows as facts of edges, with a scripted model."""

import os
import uuid
import warnings
from datetime import UTC, datetime
from itertools import islice

import serving

os.environ |= {"GRAPHITI_TELEMETRY_ENABLED": "false", "OPENAI_API_KEY": "none"}
from graphiti_core import Graphiti
from graphiti_core.cross_encoder.client import CrossEncoderClient
from graphiti_core.driver.kuzu_driver import KuzuDriver
from graphiti_core.edges import EntityEdge
from graphiti_core.embedder.client import EmbedderClient
from graphiti_core.errors import GroupsEdgesNotFoundError
from graphiti_core.graph_queries import get_fulltext_indices
from graphiti_core.llm_client import LLMClient
from graphiti_core.nodes import EntityNode, Node
from graphiti_core.utils.bulk_utils import add_nodes_and_edges_bulk

AT_ONCE = 500
ENDS = ("User", "Memories")


class LookUp(EmbedderClient):
    """The vectors of texts; the names of the two nodes have one, too."""

    def __init__(self):
        self._vectors = serving.Vectors()

    async def create(self, input_data):
        return self._of(input_data if isinstance(input_data, str) else input_data[0])

    async def create_batch(self, input_data_list):
        return [self._of(text) for text in input_data_list]

    def _of(self, text):
        return [1.0] + [0.0] * (serving.DIMENSIONS - 1) if text in ENDS else self._vectors.of(text)


class Silent(LLMClient):
    """A model that finds nothing to say: lists are empty, all else is missing."""

    def __init__(self):
        super().__init__(config=None)

    async def _generate_response(self, messages, response_model=None, *_, **__):
        fields = response_model.model_fields if response_model else {}
        return {name: [] if "list" in str(field.annotation) else None for name, field in fields.items()}


class Unranked(CrossEncoderClient):
    async def rank(self, query, passages):
        return [(passage, 0.0) for passage in passages]


class Store:
    def __init__(self):
        self._embedder = LookUp()
        self._run = serving.Loop().run
        self._graph = self._run(self._opened())

    async def _opened(self):
        warnings.simplefilter("ignore", DeprecationWarning)
        driver = KuzuDriver(db=str(serving.FOLDER / "graph.kuzu"), max_concurrent_queries=4)
        return Graphiti(graph_driver=driver, llm_client=Silent(), embedder=self._embedder, cross_encoder=Unranked())

    def close(self):
        self._run(self._graph.close())

    def setup(self):
        """Its tables were made when it was opened. The indexes of words are not made by its driver, yet asked for."""
        for statement in get_fulltext_indices(self._graph.driver.provider):
            self._run(self._graph.driver.execute_query(statement))

    def load(self):
        """By its own bulk insert, what add_triplet() writes. The vectors have no index."""
        rows = serving.rows_in_time()
        while some := list(islice(rows, AT_ONCE)):
            nodes = {person: _ends(person) for person, _ in some}
            edges = [_edge(person, text) for person, text in some]
            for edge in edges:
                edge.fact_embedding = self._embedder._of(edge.fact)
            both = [node for pair in nodes.values() for node in pair]
            self._run(add_nodes_and_edges_bulk(self._graph.driver, [], [], both, edges, self._embedder))
        return 0.0

    def search(self, person, question, limit):
        found = self._run(self._graph.search(question, group_ids=[person], num_results=limit))
        return [(edge.fact, 1 / (1 + place)) for place, edge in enumerate(found)]

    def add(self, person, text, key):
        source, target = _ends(person)
        self._run(self._graph.add_triplet(source, _edge(person, text), target))

    def delete(self, person):
        self._run(Node.delete_by_group_id(self._graph.driver, person))

    def texts(self, person):
        try:
            edges = self._run(EntityEdge.get_by_group_ids(self._graph.driver, [person]))
        except GroupsEdgesNotFoundError:
            return []
        return [edge.fact for edge in edges]


def _ends(person):
    return [
        EntityNode(uuid=str(uuid.uuid5(uuid.NAMESPACE_URL, f"{person}/{name}")), name=name, group_id=person)
        for name in ENDS
    ]


def _edge(person, text):
    source, target = _ends(person)
    return EntityEdge(
        group_id=person,
        source_node_uuid=source.uuid,
        target_node_uuid=target.uuid,
        name="SAID",
        fact=text,
        created_at=datetime.now(UTC),
    )


if __name__ == "__main__":
    serving.run(Store)
