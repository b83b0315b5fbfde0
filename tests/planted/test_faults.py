"""The faults can be planted: their texts are in the code, and their tests exist."""

from tests.each import each
from tests.planted.faults import PAGE, ROOT, Fault, load, table

FAULTS = load()


def test_there_are_thirty() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 30


@each("fault", FAULTS)
def test_a_fault_can_be_planted(fault: Fault) -> None:
    """If not, the code has changed: change the fault with it (docs/planted-faults.md)."""
    assert fault.is_current()
    for test in fault.tests:
        file, *names = test.split("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        assert all(f"def {name}(" in text or f"class {name}:" in text for name in names)


def test_the_page_shows_them() -> None:
    assert table(FAULTS) in PAGE.read_text(encoding="utf-8"), "run python -m tests.planted --page"
