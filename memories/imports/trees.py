"""Conversations as trees: an edited question or another answer begins a branch, and one branch is shown at last."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Node(NamedTuple):
    """A message by its place: which one it follows, and when it was made (a text that sorts, "" if nobody knows)."""

    parent: Any
    at: str = ""


def branch(nodes: Mapping[str, Node], leaf: Any) -> list[str]:
    """The ids from the root to `leaf`, or to the newest one that nothing follows where there is no such leaf."""
    if leaf not in nodes:
        followed = {node.parent for node in nodes.values()}
        ends = [(node.at, place, name) for place, (name, node) in enumerate(nodes.items()) if name not in followed]
        leaf = max(ends)[2] if ends else None
    found: dict[str, None] = {}
    while isinstance(leaf, str) and leaf in nodes and leaf not in found:
        found[leaf] = None
        leaf = nodes[leaf].parent
    return list(reversed(found))
