"""One test of many rows: a row that needs no set-up takes microseconds, a test of its own some milliseconds."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any


def each(names: str | Sequence[str], rows: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """As `pytest.mark.parametrize`, for a test without fixtures: it is run with all rows, and tells each that fails."""
    called = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    given = [dict(zip(called, row if len(called) > 1 else [row], strict=True)) for row in rows]

    def decorated(function: Callable[..., None]) -> Callable[..., None]:
        def all_rows(*of_class: Any, **further: Any) -> None:
            assert given, "no rows"
            failed = []
            for row in given:
                try:
                    function(*of_class, **row, **further)
                except Exception as error:  # noqa: BLE001 - told together below
                    error.add_note(f"with {row}")
                    failed.append(error)
            if failed:
                raise ExceptionGroup(f"{len(failed)} of {len(given)} rows", failed)

        # Not `wraps`: pytest would look for fixtures of these names.
        all_rows.__name__, all_rows.__doc__ = function.__name__, function.__doc__
        all_rows.__qualname__, all_rows.__module__ = function.__qualname__, function.__module__
        return all_rows

    return decorated
