"""What `make faults` adds: rounds of the same fault, and a table of what was measured at the end."""

import time
from collections.abc import Callable

import pytest

Note = Callable[[str, float, str], None]
_FIGURES = pytest.StashKey[list[tuple[str, float, str]]]()
_BEGUN = pytest.StashKey[float]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_FIGURES], config.stash[_BEGUN] = [], time.monotonic()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "round_number" in metafunc.fixturenames:
        metafunc.parametrize("round_number", range(1, (metafunc.config.getoption("--rounds") or 5) + 1))


@pytest.fixture
def note(request: pytest.FixtureRequest) -> Note:
    """Keep a figure for the table: which fault, seconds, and what they are or what else was seen."""

    def keep(fault: str, seconds: float, text: str) -> None:
        request.config.stash[_FIGURES].append((fault, seconds, text))

    return keep


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    figures = config.stash.get(_FIGURES, [])
    if not figures:
        return
    terminalreporter.section("faults at their full size")
    for fault, seconds, text in sorted(figures):
        terminalreporter.write_line(f"{fault:<46} {seconds:7.1f} s  {text}")
    terminalreporter.write_line(f"{'all of it':<46} {time.monotonic() - config.stash[_BEGUN]:7.1f} s")
