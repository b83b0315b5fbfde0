"""Conversations as trees: an edited question or another answer begins a branch, and one branch is shown at last."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Node(NamedTuple):
    """A message by its place: which one it follows, and when it was made (a text that sorts, "" if nobody knows)."""

    parent: Any
    at: str = ""


def branch(nodes: Mapping[str, Node], leaf: Any) -> list[str]:
    """The ids from the root to `leaf`, or to the newest one that nothing follows where there is no such leaf."""
    leaf = _name(leaf)
    if leaf not in nodes:
        followed = {_name(node.parent) for node in nodes.values()}
        placed = [(node.at, place, name) for place, (name, node) in enumerate(nodes.items())]
        ends = [one for one in placed if one[2] not in followed]
        # Where each follows another it is a ring.
        leaf = max(ends or placed, default=("", 0, None))[2]
    found: dict[str, None] = {}
    while leaf is not None and leaf in nodes and leaf not in found:
        found[leaf] = None
        leaf = _name(nodes[leaf].parent)
    return list(reversed(found))


def _name(value: Any) -> str | None:
    """What names a message; nothing else does."""
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else None
