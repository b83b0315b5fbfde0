"""Which memory files a dream is shown and may edit: the setting's, beside those that the agent has."""

from dataclasses import replace

from memories.files.dream_files import EditableFiles, of_lines, wrong_line
from memories.models.people.tenants import dream_files
from tests.each import each

NANOBOT = ("/SOUL.md", "/USER.md", "/memory/MEMORY.md")
DEEPAGENTS = ("/memories/AGENTS.md",)
WRONG = (
    "", "/", "//", "USER.md", "/a//b", "/a/./b.md", "/temp/", "/temp/t1/x.md", "/a\u200b.md", f"/{'x' * 999}/y",
)  # fmt: skip


def habits(*present: str) -> EditableFiles:
    return replace(of_lines(dream_files()), present=set(present))


@each(("present", "shown"), [
    ((), ["/SOUL.md", "/USER.md", "/MEMORY.md"]),
    (("/USER.md",), ["/SOUL.md", "/USER.md", "/MEMORY.md"]),
    (NANOBOT, ["/SOUL.md", "/USER.md", "/memory/MEMORY.md"]),
    (NANOBOT[1:], ["/SOUL.md", "/USER.md", "/memory/MEMORY.md"]),
    (DEEPAGENTS, ["/memories/AGENTS.md"]),
    ((*DEEPAGENTS, "/USER.md"), ["/SOUL.md", "/USER.md", "/MEMORY.md", "/memories/AGENTS.md"]),
    (("/MEMORY.md", "/memory/MEMORY.md"), ["/SOUL.md", "/USER.md", "/MEMORY.md", "/memory/MEMORY.md"]),
])  # fmt: skip
def test_a_missing_file_is_shown_beside_others_once_for_its_name(present: tuple[str, ...], shown: list[str]) -> None:
    assert habits(*present).shown() == shown


@each(("present", "path", "file"), [
    (NANOBOT, "memory/MEMORY.md", "/memory/MEMORY.md"),
    (NANOBOT, "./memory/MEMORY.md", "/memory/MEMORY.md"),
    # Not a second one.
    (NANOBOT, "/MEMORY.md", "/memory/MEMORY.md"),
    (NANOBOT, "MEMORY.md", "/memory/MEMORY.md"),
    (NANOBOT, "/memories/AGENTS.md", None),
    (NANOBOT, "memory.md", None),
    (("/SOUL.md",), "memory/MEMORY.md", "/memory/MEMORY.md"),
    (("/SOUL.md",), "MEMORY.md", "/MEMORY.md"),
    (("/MEMORY.md", "/memory/MEMORY.md"), "MEMORY.md", "/MEMORY.md"),
    (DEEPAGENTS, "/memories/AGENTS.md", "/memories/AGENTS.md"),
    (DEEPAGENTS, "AGENTS.md", "/memories/AGENTS.md"),
    (DEEPAGENTS, "USER.md", None),
    (DEEPAGENTS, "/memories/USER.md", None),
    ((), "memories/AGENTS.md", "/memories/AGENTS.md"),
    ((), "memory/MEMORY.md", "/memory/MEMORY.md"),
    ((), "notes/MEMORY.md", None),
    ((), "skills/bread/SKILL.md", "/skills/bread/SKILL.md"),
    ((), "skills/bread/../../USER.md", None),
    ((), "skills/", None),
])  # fmt: skip
def test_what_a_path_of_an_answer_means(present: tuple[str, ...], path: str, file: str | None) -> None:
    assert habits(*present).named(path) == file


def test_lines_are_paths_of_files_and_folders() -> None:
    assert wrong_line([*dream_files(), "/a/b c.md", "/一.md"]) is None
    assert [wrong_line(["/USER.md", line]) for line in WRONG] == list(WRONG)
