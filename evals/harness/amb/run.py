"""`python -m evals.harness.amb.run CHECKOUT run …`: the command line of AMB (`omb`) with `--memory memoryhub`.

The checkout is not changed: the provider is registered in this process. Packages of other memory systems, which AMB
imports whether it runs them or not, may be missing.
"""

import importlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

from evals.harness.remembering import Remembering

NAME = "memoryhub"
# What AMB imports for its other providers alone.
PEERS = ("mem0", "qdrant_client", "sentence_transformers")


class MemoryHubProvider:
    """What a provider of AMB does, beside its base class. `document` is AMB's class of that name."""

    document: type
    name = NAME
    description = "Memory Hub: contexts of a self-hosted hub, over its API."
    kind = "local"
    link = None
    concurrency = 4

    def __init__(self) -> None:
        self._hub = Remembering()
        self._persons: dict[str | None, str] = {}

    def ingest(self, documents: list[Any]) -> None:
        """Each document is a session of its person."""
        for one in documents:
            said = one.messages or self._spoken(one)
            found = [{**turn, "at": turn.get("timestamp") or one.timestamp} for turn in said]
            self._hub.say(one.user_id or "nobody", one.id, found)

    def _spoken(self, document: Any) -> list[dict[str, Any]]:
        """Of LoCoMo, whose documents are JSON, the words of its two speakers: the first one's of a conversation are the
        person's, the other's the agent's. Of a plain text, the text."""
        try:
            lines = json.loads(document.content)
            names = [str(one["speaker"]) for one in lines]
        except (ValueError, TypeError, KeyError):
            return [{"role": "user", "content": document.content}]
        person = self._persons.setdefault(document.user_id, names[0])
        return [
            {"role": "user" if name == person else "assistant", "content": f"{name}: {one.get('text', '')}"}
            for name, one in zip(names, lines, strict=True)
        ]

    def retrieve(
        self, query: str, k: int = 10, user_id: str | None = None, query_timestamp: str | None = None
    ) -> tuple[list[Any], dict[str, Any] | None]:
        """One document: the context."""
        del k, query_timestamp
        memory = self._hub.told(user_id or "nobody", query)
        return [self.document(id="context", content=memory, user_id=user_id)], None


def main() -> None:
    checkout, *arguments = sys.argv[1:]
    sys.path.insert(0, str(Path(checkout).absolute() / "src"))
    for package in PEERS:
        if importlib.util.find_spec(package) is None:
            sys.modules[package] = MagicMock()
    memory = importlib.import_module("memory_bench.memory")
    models = importlib.import_module("memory_bench.models")
    own = {"document": models.Document}
    memory.REGISTRY[NAME] = type("MemoryHub", (MemoryHubProvider, memory.MemoryProvider), own)
    cli = importlib.import_module("memory_bench.cli")
    sys.argv = ["omb", *arguments]
    cli.app()


if __name__ == "__main__":
    main()
