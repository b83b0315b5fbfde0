"""The examples of the pages, in order, against a fresh hub."""

import re
from typing import Any

import pytest
from conftest import ROOT, RunningHub

EXAMPLE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = [
    "clients/python/README.md",
    "docs/clients.md",
    "docs/deepagents.md",
    "docs/deerflow.md",
    "docs/langchain.md",
    "docs/langgraph.md",
    "docs/management.md",
    "docs/openai-agents.md",
]
MANAGEMENT = "docs/management.md"


def examples(page: str) -> list[str]:
    return EXAMPLE.findall((ROOT / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_work(page: str, running: RunningHub, monkeypatch: pytest.MonkeyPatch) -> None:
    # Each page has people of its own.
    key = running.key(tenant=re.sub(r"\W+", "-", page.lower())) if page != MANAGEMENT else running.management_key()
    monkeypatch.setenv("MEMORYHUB_KEY", key)
    monkeypatch.setenv("MEMORYHUB_URL", running.base_url)
    names: dict[str, Any] = {"__name__": "example"}
    # The reader's own, which no test has.
    if "langchain" in page:
        names["model"] = pytest.importorskip("test_langchain").Scripted()
    if "agents" in page:
        names["model"] = pytest.importorskip("test_openai_agents").answers(3)
    assert examples(page)
    for example in examples(page):
        exec(compile(example, page, "exec"), names)


def test_all_pages_with_examples_are_run() -> None:
    pages = [str(page.relative_to(ROOT)) for page in [*ROOT.glob("docs/**/*.md"), *ROOT.glob("clients/python/*.md")]]
    assert sorted(page for page in pages if "memoryhub_client" in "".join(examples(page))) == sorted(PAGES)
