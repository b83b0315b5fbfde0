"""`python -m evals.harness.membase.run CHECKOUT SCRIPT …`: a stage of MemBase with `--memory-type MemoryHub`.

SCRIPT is `memory_construction.py`, `memory_search.py` or `memory_evaluation.py`. The checkout is not changed: the layer
is registered in this process.
"""

import importlib
import runpy
import sys
from pathlib import Path
from typing import Any

from evals.harness.remembering import Remembering

NAME = "MemoryHub"


class MemoryHubLayer:
    """What a layer of MemBase does, beside its base class. `entry` is MemBase's class of what is found."""

    entry: type
    layer_type = NAME

    def __init__(self, config: Any) -> None:
        self.config, self._hub, self._waiting, self._person = config, Remembering(), list[Any](), ""
        # Where MemBase itself writes what it found.
        Path(config.save_dir).mkdir(parents=True, exist_ok=True)

    def add_message(self, message: Any, **_: Any) -> None:
        """It is posted with its day's others: `flush` ends a trajectory."""
        self._waiting.append(message)

    def add_messages(self, messages: list[Any], **_: Any) -> None:
        self._waiting.extend(messages)

    def flush(self) -> None:
        """Post what waits, a session for each day on which something was said. The one who speaks first is the person;
        where another one has the role user, too, as in LoCoMo, their words are taken for the agent's."""
        days: dict[str, list[dict[str, Any]]] = {}
        for one in self._waiting:
            self._person = self._person or one.name
            role = "assistant" if one.role == "user" and one.name != self._person else one.role
            said = {"role": role, "content": f"{one.name}: {one.content}", "at": one.timestamp}
            days.setdefault(one.timestamp[:10], []).append(said)
        for day, all_said in days.items():
            self._hub.say(self.config.user_id, day, all_said)
        self._waiting.clear()

    def retrieve(self, query: str, k: int = 10, **_: Any) -> list[Any]:
        """One entry: the context."""
        del k
        memory = self._hub.told(self.config.user_id, query)
        return [self.entry(content=memory, formatted_content=memory)]

    def delete(self, memory_id: str) -> bool:
        raise NotImplementedError(f"No stage of MemBase deletes an entry ({memory_id}).")

    def update(self, memory_id: str, **_: Any) -> bool:
        raise NotImplementedError(f"No stage of MemBase changes an entry ({memory_id}).")

    def save_memory(self) -> None:
        """The hub has it."""
        self.flush()

    def load_memory(self, user_id: str | None = None) -> bool:
        """Whether the hub knows the person."""
        named = user_id or self.config.user_id
        return next(iter(self._hub.hub.list_sessions(user_id=named, page_size=1)), None) is not None


def register() -> None:
    """In the process of MemBase, whose folder is on the path."""
    configs, layers = importlib.import_module("membase.configs"), importlib.import_module("membase.layers")
    base = importlib.import_module("membase.layers.base").MemBaseLayer
    entry = importlib.import_module("membase.model_types.memory").MemoryEntry
    config = importlib.import_module("membase.configs.base").MemBaseConfig
    configs.CONFIG_MAPPING.register(NAME, config)
    layers.MEMORY_LAYERS_MAPPING.register(NAME, type("MemoryHub", (MemoryHubLayer, base), {"entry": entry}))


def main() -> None:
    checkout, script, *arguments = sys.argv[1:]
    root = Path(checkout).absolute()
    sys.path.insert(0, str(root))
    register()
    sys.argv = [str(root / script), *arguments]
    runpy.run_path(str(root / script), run_name="__main__")


if __name__ == "__main__":
    main()
