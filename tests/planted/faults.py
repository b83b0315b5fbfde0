"""The faults of `faults.toml`, and the table that docs/planted-faults.md shows of them."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DATA = Path(__file__).with_name("faults.toml")
PAGE = ROOT / "docs/planted-faults.md"
BEGIN = "| promise | rule | fault | tests that fail |"


@dataclass(frozen=True)
class Fault:
    """One change of one file: `old` becomes `new`, which breaks the promise, and one of the tests must fail.

    `rule` is the number of a rule of memory, or empty.
    """

    name: str
    promise: str
    rule: str
    file: str
    old: str
    new: str
    tests: list[str]

    def is_current(self) -> bool:
        """Whether the text to change is in its file exactly once."""
        return self.old != self.new and (ROOT / self.file).read_text(encoding="utf-8").count(self.old) == 1

    def plant(self, tree: Path) -> None:
        """Change the file of a copy of the repository."""
        file = tree / self.file
        file.write_text(file.read_text(encoding="utf-8").replace(self.old, self.new), encoding="utf-8")

    def repair(self, tree: Path) -> None:
        (tree / self.file).write_bytes((ROOT / self.file).read_bytes())


def load() -> list[Fault]:
    return [Fault(**one) for one in tomllib.loads(DATA.read_text(encoding="utf-8"))["fault"]]


def table(faults: list[Fault]) -> str:
    """The table of docs/planted-faults.md, a line a fault."""
    lines = []
    for one in faults:
        tests = ", ".join(f"`{test}`" for test in one.tests)
        lines.append(f"| {one.promise} | {one.rule} | `{one.name}` in `{one.file}` | {tests} |")
    return "\n".join([BEGIN, "| --- | --- | --- | --- |", *lines]) + "\n"
