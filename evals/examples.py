"""`python -m evals.examples`: writes docs/search-examples.md from what a hub answers to real questions.

The texts are written for it, in evals/examples.json: talks, facts, and questions.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from evals import rest
from evals.hub import ROOT, started

TEXTS = Path(__file__).with_name("examples.json")
PAGE = ROOT / "docs" / "search-examples.md"
PERSON = "example"
SHOWN = 3
# An embedding that never answers.
UNREACHABLE = {"MEMORYHUB_EMBEDDINGS": "openai", "MEMORYHUB_EMBEDDING_BASE_URL": "http://127.0.0.1:9/v1"}


class Answers(Protocol):
    """A hub, or what stands for one in a test."""

    def call(self, method: str, path: str, body: Any = None) -> Any: ...


def main() -> None:
    """Ask a hub of its own, and write the page."""
    texts = json.loads(TEXTS.read_text(encoding="utf-8"))
    sections: dict[str, str] = {}
    for by_words, environ in ((False, {}), (True, UNREACHABLE)):
        with started(**environ) as hub:
            fill(hub, texts)
            if not by_words:
                rest.wait_for_vectors(hub, PERSON)
            asked = [one for one in texts["questions"] if by_words is bool(one.get("words"))]
            sections |= {one["title"]: _section(one, ask(hub, one)) for one in asked}
    PAGE.write_text(HEAD + "\n".join(sections[one["title"]] for one in texts["questions"]), encoding="utf-8")


def fill(hub: Answers, texts: Any) -> None:
    """Post the talks and state the facts."""
    for talk in texts["talks"]:
        messages = [{"role": role, "content": content} for role, content in talk["messages"]]
        hub.call("POST", "/turns", {"user_id": PERSON, "session_id": talk["session_id"], "messages": messages})
    for fact in texts["facts"]:
        hub.call("POST", "/facts", {"user_id": PERSON, **fact})


def ask(hub: Answers, question: Any) -> list[Any]:
    """The best results, best first."""
    body = {"user_id": PERSON, "query": question["query"], "kinds": question["kinds"], "limit": SHOWN}
    results: list[Any] = hub.call("POST", "/search", body)["results"]
    return results


HEAD = """# Search examples
These are answers of the hub with the embedding model that comes with it and no other model. The conversations and
questions are in `evals/examples.json`. `python -m evals.examples` starts a hub, asks it the questions and writes this
page. A test compares the first result of each with this page. [Retrieval](retrieval.md) explains the parts of a
score.

"""


def _section(question: Any, results: Sequence[Any]) -> str:
    query = question["query"] if len(question["query"]) < 400 else question["query"][:200].rstrip() + " …"
    lines = [f"## {question['title']}", f"> {query}", ""]
    lines += ["| score | kind | text | parts |", "| --- | --- | --- | --- |"]
    lines += [_row(one) for one in results]
    return "\n".join([*lines, "", question["note"], ""])


def _row(one: Any) -> str:
    parts = ", ".join(f"{name} {value:.2f}" for name, value in one["score_parts"].items() if round(value, 2))
    where = f"turn {one['turn_numbers'][0]} of {one['session_id']}" if one["kind"] == "turn" else one["kind"]
    return f"| {one['score']:.2f} | {where} | {one['text'].replace('|', '/')} | {parts} |"


if __name__ == "__main__":
    main()
