"""`python -m evals.harness.omnimemeval.run CHECKOUT SCRIPT …`: run a script of OmniMemEval with `--lib memoryhub`.

The checkout is not changed: the adapter is registered in this process. SCRIPT is a path below `scripts/`, such as
`tests/integration/smoke_clients.py` or `locomo/locomo_ingestion.py`.
"""

import importlib
import runpy
import sys
from pathlib import Path
from typing import Any

from evals.harness.remembering import Remembering

NAME = "memoryhub"


class MemoryHubClient(Remembering):
    """What `create_client("memoryhub")` of OmniMemEval makes."""

    def add(self, messages: list[dict[str, Any]], user_id: str, conv_id: str | None = None, **_: Any) -> None:
        """A session, or a part of one. Where the harness names none, its moment does."""
        session = conv_id or str(next((one["chat_time"] for one in messages if one.get("chat_time")), "undated"))
        self.say(user_id, session, [{**one, "at": one.get("chat_time")} for one in messages])

    def search(self, query: str, user_id: str, top_k: int) -> str:  # a context has tokens, not hits
        """What the answering model is told."""
        return self.told(user_id, query)

    def delete(self, user_id: str) -> None:
        """Before and after a run."""
        self.forget(user_id)

    delete_user = delete


def main() -> None:
    checkout, script, *arguments = sys.argv[1:]
    scripts = Path(checkout).absolute() / "scripts"
    sys.path.insert(0, str(scripts))
    registry = importlib.import_module("client_factory.registry")
    registry._LIB_CLIENT_REGISTRY[NAME] = (NAME, "MemoryHubClient")
    registry.SUPPORTED_LIBS.append(NAME)
    sys.modules[f"client_factory.{NAME}"] = sys.modules[__name__]
    helpers = importlib.import_module("utils.ingest_helpers")
    # Messages get their moment as `chat_time`, sessions their name as `conv_id`.
    for names in ("_CHAT_TIME_LIBS", "_CONV_ID_LIBS"):
        setattr(helpers, names, getattr(helpers, names) | {NAME})
    sys.argv = [str(scripts / script), *arguments]
    runpy.run_path(str(scripts / script), run_name="__main__")


if __name__ == "__main__":
    main()
