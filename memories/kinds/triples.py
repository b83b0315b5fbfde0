"""Triples of the graph: what holds between two entities, and when."""

from memories.kinds.kind import Kind, Served
from memories.models import GraphTriple

TRIPLE = Kind("triple", "triples", GraphTriple, served=Served(3), is_purged=True)
