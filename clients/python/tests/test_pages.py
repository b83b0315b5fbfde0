"""The examples of the pages, in order, against a fresh hub."""

import re
from typing import Any

import pytest
from conftest import FRAMEWORKS, MISSING, ROOT, RunningHub

from memoryhub_client import HubManagement, MemoryHub

EXAMPLE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = [
    "clients/python/README.md",
    "docs/adk.md",
    "docs/clients.md",
    "docs/crewai.md",
    "docs/deepagents.md",
    "docs/deerflow.md",
    "docs/langchain.md",
    "docs/langgraph.md",
    "docs/llamaindex.md",
    "docs/management.md",
    "docs/openai-agents.md",
    "docs/person-page.md",
    "docs/pydantic-ai.md",
]
MANAGEMENT = "docs/management.md"
PERSON_PAGE = "docs/person-page.md"


def examples(page: str) -> list[str]:
    return EXAMPLE.findall((ROOT / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_work(page: str, running: RunningHub, monkeypatch: pytest.MonkeyPatch) -> None:
    if page.removeprefix("docs/").removesuffix(".md") in MISSING:
        pytest.skip("The framework is not here: `make clients-suite` runs this page.")
    # Each page has people of its own.
    tenant = re.sub(r"\W+", "-", page.lower())
    key = running.key(tenant=tenant) if page != MANAGEMENT else running.management_key()
    if page != MANAGEMENT:
        # Whoever reads the page has the README's people in the tenant by then.
        state_the_readme(running, key)
    if page == PERSON_PAGE:
        switch_on(running, tenant)
    monkeypatch.setenv("MEMORYHUB_KEY", key)
    monkeypatch.setenv("MEMORYHUB_URL", running.base_url)
    names: dict[str, Any] = {"__name__": "example", **of_the_reader(page)}
    assert examples(page)
    for example in examples(page):
        exec(compile(example, page, "exec"), names)


def of_the_reader(page: str) -> dict[str, Any]:
    """What no test has: their model."""
    framework = page.removeprefix("docs/").removesuffix(".md")
    if framework in FRAMEWORKS or framework == "pydantic-ai":
        return {"model": pytest.importorskip(f"test_{framework.replace('-', '_')}").scripted()}
    if "langchain" in page:
        return {"model": pytest.importorskip("test_langchain").Scripted()}
    if "agents" in page:
        return {"model": pytest.importorskip("test_openai_agents").answers(3)}
    return {}


def state_the_readme(running: RunningHub, key: str) -> None:
    """Its steps 1 and 3."""
    with MemoryHub(key, base_url=running.base_url) as hub:
        hub.post_turns(user_id="u1", session_id="s1", messages=[{"role": "user", "content": "I moved to Leiden."}])
        hub.add_fact(user_id="u1", content="Allergic to peanuts", category="constraint")


def switch_on(running: RunningHub, tenant: str) -> None:
    """What the page has its reader do first."""
    with HubManagement(running.management_key(), base_url=running.base_url) as management:
        management.change_tenant(tenant, person_page=True)


def test_all_pages_with_examples_are_run() -> None:
    pages = [str(page.relative_to(ROOT)) for page in [*ROOT.glob("docs/**/*.md"), *ROOT.glob("clients/python/*.md")]]
    assert sorted(page for page in pages if "memoryhub_client" in "".join(examples(page))) == sorted(PAGES)
