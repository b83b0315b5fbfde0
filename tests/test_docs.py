"""The documentation names every setting, command and decision, and no page grows out of hand."""

import re
from pathlib import Path

from django.core.management import get_commands

from tests.each import each

ROOT = Path(__file__).resolve().parent.parent
DOCS = "\n".join(path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *ROOT.glob("docs/*.md")])

PAGES = ["README.md", "CONTRIBUTING.md", *(f"docs/{path.name}" for path in sorted(ROOT.glob("docs/*.md")))]


def settings_read() -> set[str]:
    wiring = [ROOT / "memoryhub" / name for name in ("settings.py", "access.py")]
    sources = [*wiring, *(ROOT / "memoryhub/embedded_postgres").glob("*.py")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    return set(re.findall(r'"((?:MEMORYHUB|OPENAI)_[A-Z_]+|DATABASE_URL)"', text))


def test_the_settings_are_found() -> None:
    assert {"DATABASE_URL", "MEMORYHUB_HOME", "OPENAI_API_KEY", "MEMORYHUB_LLM_TIMEOUT"} <= settings_read()


@each("name", sorted(settings_read()))
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


@each("page", PAGES)
def test_links_between_pages_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = [target for target in re.findall(r"\]\(([^)#\s]+)", text) if "://" not in target]
    assert [target for target in targets if not ((ROOT / page).parent / target).exists()] == []


def modules_run(text: str) -> set[str]:
    """Modules of the repository that a page runs with `python -m`."""
    return set(re.findall(r"python -m ([a-z_]+(?:\.[a-z_]+)*)", text)) - {"pytest"}


def is_module(name: str) -> bool:
    place = ROOT / name.replace(".", "/")
    return place.with_suffix(".py").is_file() or (place / "__main__.py").is_file()


def test_every_module_that_a_page_runs_exists() -> None:
    assert len(modules_run(DOCS)) > 5
    assert sorted(name for name in modules_run(DOCS) if not is_module(name)) == []
    assert [is_module(name) for name in modules_run("run `python -m tests.no_such --help`")] == [False]


def test_the_client_is_installed_from_its_folder() -> None:
    """No index has it under this name: somebody else could."""
    lines = re.findall(r"pip install [^`\n]*", DOCS)
    assert sum("./clients/python" in line for line in lines) > 3
    assert [line for line in lines if "memoryhub" in line] == []


def test_every_target_of_make_on_a_page_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    cited = set(re.findall(r"(?:`|^)make ([a-z-]+)", DOCS, re.MULTILINE))
    assert {"up", "test", "no-such"} - targets == {"no-such"}
    assert {"up", "test", "bench"} <= cited
    assert cited - targets == set()


def anchors(text: str) -> set[str]:
    """Those of the headings, as GitHub makes them; a heading that comes twice has a number behind it."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    titles = [re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", title) for title in re.findall(r"^#+ (.+)$", prose, re.MULTILINE)]
    slugs = [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles]
    return {f"{slug}-{slugs[:at].count(slug)}" if slug in slugs[:at] else slug for at, slug in enumerate(slugs)}


@each("page", PAGES)
def test_links_to_headings_lead_to_one(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", text) if "://" not in link[0]]
    places = {target: (ROOT / page).parent / target if target else ROOT / page for target, _ in links}
    known = {target: anchors(place.read_text(encoding="utf-8")) for target, place in places.items()}
    assert [f"{target}#{anchor}" for target, anchor in links if anchor not in known[target]] == []


def test_a_heading_that_is_gone_is_missed() -> None:
    found = anchors(
        "# One, two\n## 5.7 Our `own` context\n```\n# no heading\n```\n## [A](b.md) link\n## Again\n## Again\n"
    )
    assert found == {"one-two", "57-our-own-context", "a-link", "again", "again-1"}


# Where the paths of the pages begin: the repository, and for modules the app's package.
BASES = (ROOT, ROOT / "memories")
# Files that the hub writes or hands out: no part of the repository.
MADE_AT_RUN_TIME = {
    ".eval-extraction.json",
    ".memoryhub/",
    ".venv-clients/",
    "README.txt",
    "audit-heads.json",
    "data.json",
    "memory.json",
    "readable.html",
    "schema.json",
}
PATH = re.compile(
    r"`(?P<path>\.?[\w*][\w./*-]*(?:\.(?:py|md|toml|txt|json|jsonl|html|css|js|conf|yml|svg|lock)|/))(?:::(?P<name>\w+))?`"
)


def cited_paths(text: str) -> set[tuple[str, str]]:
    """The paths in backticks, each with the name that follows it after `::`, if any; not what stands in code blocks."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return {(found["path"], found["name"] or "") for found in PATH.finditer(prose)} - {
        (path, "") for path in MADE_AT_RUN_TIME
    }


def exists(path: str, name: str = "") -> bool:
    """Whether the path leads to a file or folder (with `*`: to some), which defines `name` if one is given."""
    found = [place for base in BASES for place in (base.glob(path) if "*" in path else [base / path]) if place.exists()]
    defined = re.compile(rf"^ *(?:async )?(?:def|class) {name}\b", re.MULTILINE)
    return any(not name or (place.is_file() and defined.search(place.read_text(encoding="utf-8"))) for place in found)


@each("page", PAGES)
def test_every_path_on_a_page_exists(page: str) -> None:
    cited = cited_paths((ROOT / page).read_text(encoding="utf-8"))
    assert sorted(path for path, name in cited if not exists(path, name)) == []


def test_the_pages_cite_paths() -> None:
    assert len(cited_paths(DOCS)) > 200


@each(
    ("cited", "is_there"),
    [
        ("`text/signals.py`", True),
        ("`tests/test_docs.py`", True),
        ("`tests/test_docs.py::exists`", True),
        ("`text/data/*.toml`", True),
        ("`memories/text/`", True),
        ("`text/no_such.py`", False),
        ("`signals.py`", False),
        ("`tests/test_docs.py::no_such`", False),
        ("`text/data/no_such_*.toml`", False),
        ("`memories/no_such/`", False),
    ],
)
def test_a_path_that_is_gone_is_missed(cited: str, is_there: bool) -> None:
    [found] = cited_paths(f"see {cited} for it")
    assert exists(*found) is is_there


PLACES = (ROOT / "docs/where-to-change.md").read_text(encoding="utf-8")
# A name in backticks, of a function, a class, a constant, a field or a key; perhaps of a decorator.
NAME = re.compile(r"`@?([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)`")


def items(text: str) -> list[str]:
    """The items of the lists, the rows of the tables and the paragraphs."""
    return re.split(r"\n(?= *- |\|)|\n{2,}", text)


def names_in(item: str) -> list[str]:
    return NAME.findall(PATH.sub("", item))


def names_gone(item: str) -> list[str]:
    """The names of an item that stand in no file that it cites; without such a file nothing is checked."""
    found = [place for base in BASES for path, _ in cited_paths(item) for place in base.glob(path)]
    files = [one for place in found for one in (place.rglob("*.py") if place.is_dir() else [place]) if one.is_file()]
    words = {word for file in files for word in re.findall(r"\w+", file.read_text(encoding="utf-8"))}
    return [name for name in names_in(item) if files and not words.issuperset(name.split("."))]


def test_every_name_on_the_page_of_places_stands_in_a_file_beside_it() -> None:
    assert len([name for item in items(PLACES) for name in names_in(item)]) > 100
    assert [(name, item) for item in items(PLACES) for name in names_gone(item)] == []


@each(
    ("item", "gone"),
    [
        ("- `text/signals.py`: `matches`, `no_such`", ["no_such"]),
        ("- `models/memories/refusals.py`: `FactRefusal.rewrite`, `FactRefusal.no_such`", ["FactRefusal.no_such"]),
        ("| a page | `@column` and `no_such` in `admin/facts/pages.py` |", ["no_such"]),
        ("`matches` and `no_such` in `text/`", ["no_such"]),
    ],
)
def test_a_name_that_is_gone_is_missed(item: str, gone: list[str]) -> None:
    assert names_gone(item) == gone


@each("page", ["architecture.md", "where-to-change.md"])
def test_pages_for_newcomers_stay_short(page: str) -> None:
    assert (ROOT / "docs" / page).stat().st_size < 30_000


RULES = (ROOT / "docs/rules.md").read_text(encoding="utf-8")
SECTIONS = set(re.findall(r"^## (\d+)\. ", RULES, re.MULTILINE))
RULE = re.compile(r"^### (\d+\.\d+) [^\n]+\n(.*?)(?=^#|\Z)", re.MULTILINE | re.DOTALL)
NUMBERED = dict(RULE.findall(RULES))
NUMBER = r"\d+(?:\.\d+)?"
CITATION = re.compile(rf"rules\.md,? ({NUMBER}(?:(?:, | and | to ){NUMBER})*)?")


def cited_rules(text: str) -> list[str]:
    """The numbers that comments cite; an empty one for a citation without a number."""
    return [number for cited in CITATION.findall(text) for number in re.findall(NUMBER, cited) or [""]]


def test_every_rule_that_the_code_cites_exists() -> None:
    sources = [path for folder in ("memories", "memoryhub", "tests") for path in (ROOT / folder).rglob("*")]
    texts = {
        path: path.read_text(encoding="utf-8")
        for path in sources
        if path.suffix in {".py", ".toml", ".html", ".txt"} and path != Path(__file__)
    }
    cited = [(str(path.relative_to(ROOT)), number) for path, text in texts.items() for number in cited_rules(text)]
    assert len(cited) > 40
    assert [one for one in cited if one[1] not in NUMBERED.keys() | SECTIONS] == []


def test_rules_are_numbered_without_gaps() -> None:
    counted = {section: [number for number in NUMBERED if number.split(".")[0] == section] for section in SECTIONS}
    assert sum(map(len, counted.values())) == len(NUMBERED) > 40
    for section, numbers in counted.items():
        assert numbers == [f"{section}.{place}" for place in range(1, len(numbers) + 1)]


@each("number", NUMBERED)
def test_every_rule_names_its_code_and_its_tests(number: str) -> None:
    [(code, tests)] = re.findall(r"^Code: (.*?)\sTests:\s(.*?)\.$", NUMBERED[number], re.MULTILINE | re.DOTALL)
    assert cited_paths(code)
    shown_by = [path for path, _ in cited_paths(tests)]
    assert shown_by
    assert [path for path in shown_by if not re.search(r"^tests/(?:\w+/)*test_\w+\.py$", path)] == []


@each(
    ("comment", "numbers"),
    [
        ("(rules.md, 5.7)", ["5.7"]),
        ("(rules.md, 1.3 and 2.2)", ["1.3", "2.2"]),
        ("(rules.md, 5.1 to 5.3).", ["5.1", "5.3"]),
        ("rules.md, 7.1: 30 days", ["7.1"]),
        ("the table of rules.md 7.1", ["7.1"]),
        ("(rules.md, 10): what", ["10"]),
        ("(rules.md, section 3)", [""]),
        ("(rules.md, 5.99)", ["5.99"]),
    ],
)
def test_citations_are_read(comment: str, numbers: list[str]) -> None:
    assert cited_rules(comment) == numbers
    assert "" not in NUMBERED.keys() | SECTIONS
    assert "5.99" not in NUMBERED.keys() | SECTIONS
