"""The documentation names every setting, command and decision, and no page grows out of hand."""

import re
from pathlib import Path

import pytest
from django.core.management import get_commands

ROOT = Path(__file__).resolve().parent.parent
DOCS = "\n".join(path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *ROOT.glob("docs/*.md")])


def settings_read() -> set[str]:
    wiring = [ROOT / "memoryhub" / name for name in ("settings.py", "access.py")]
    sources = [*wiring, *(ROOT / "memoryhub/embedded_postgres").glob("*.py")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    return set(re.findall(r'"((?:MEMORYHUB|OPENAI)_[A-Z_]+|DATABASE_URL)"', text))


def test_the_settings_are_found() -> None:
    assert {"DATABASE_URL", "MEMORYHUB_HOME", "OPENAI_API_KEY", "MEMORYHUB_LLM_TIMEOUT"} <= settings_read()


@pytest.mark.parametrize("name", sorted(settings_read()))
def test_every_setting_is_documented(name: str) -> None:
    assert f"`{name}`" in (ROOT / "docs/settings.md").read_text(encoding="utf-8")


def test_no_setting_is_documented_that_does_not_exist() -> None:
    documented = set(re.findall(r"`((?:MEMORYHUB|OPENAI)_[A-Z_]+)`", (ROOT / "docs/settings.md").read_text()))
    assert documented <= settings_read()


def test_every_command_of_ours_is_documented() -> None:
    ours = [name for name, app in get_commands().items() if app == "memories"]
    assert "seed_demo" in ours
    assert [name for name in ours if f"manage.py {name}" not in DOCS] == []


def test_every_decision_is_listed() -> None:
    index = (ROOT / "docs/decisions/README.md").read_text(encoding="utf-8")
    pages = [path.name for path in (ROOT / "docs/decisions").glob("0*.md")]
    assert pages
    assert [name for name in pages if name not in index] == []


def test_the_readme_is_short_and_shows_the_hub() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 150
    picture = re.search(r"!\[[^\]]+\]\(([^)]+\.png)\)", readme)
    assert picture
    assert (ROOT / picture.group(1)).is_file()


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", *(f"docs/{path.name}" for path in ROOT.glob("docs/*.md"))]
)
def test_links_between_pages_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = [target for target in re.findall(r"\]\(([^)#\s]+)", text) if "://" not in target]
    assert [target for target in targets if not ((ROOT / page).parent / target).exists()] == []


RULES = (ROOT / "docs/rules-and-tests.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)::(\w+)`", RULES)))


def is_a_test(path: str, name: str) -> bool:
    file = ROOT / "tests" / path
    return file.is_file() and bool(re.search(rf"^ *def {name}\(", file.read_text(encoding="utf-8"), re.MULTILINE))


def test_the_tests_of_the_rules_exist() -> None:
    assert len(NAMED) > 100
    assert [named for named in NAMED if not is_a_test(*named)] == []


@pytest.mark.parametrize(
    ("path", "name"), [("test_docs.py", "test_no_such"), ("no_such.py", "test_refused"), ("test_docs.py", "test_the")]
)
def test_a_test_that_is_gone_is_missed(path: str, name: str) -> None:
    assert is_a_test("test_docs.py", "test_a_test_that_is_gone_is_missed")
    assert not is_a_test(path, name)


def test_every_rule_names_its_tests() -> None:
    rows = re.findall(r"^\| (\d[\w.]*) \| [^|]+ \| ([^|]*) \|$", RULES, re.MULTILINE)
    rules = {"3", *(f"4.{n}" for n in range(1, 5)), *(f"5.{n}" for n in range(1, 9)), "6.2", "6.3", "10"}
    assert {number.rstrip("abcdefghijkl") for number, _ in rows} == rules
    assert [number for number, tests in rows if not tests.startswith("`")] == []
    assert sum(len(tests.split()) for _, tests in rows) == len(re.findall("`[^`]+::", RULES))
