"""Turns: what was said. They are the source of memories, and contexts recall them as they are."""

from memories.kinds.kind import Kind, Served
from memories.models import Turn

TURN = Kind("turn", "turns", Turn, served=Served(8))
