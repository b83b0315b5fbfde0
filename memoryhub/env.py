"""Strict readers of environment variables: a bad value stops the start, naming the variable and what is allowed."""

import os
import re
from decimal import Decimal

from django.core.exceptions import ImproperlyConfigured

TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off"})
WINDOW = re.compile(r"(?:[01]\d|2[0-3]):[0-5]\d-(?:[01]\d|2[0-3]):[0-5]\d")
PERIODS = {"s": 1, "min": 60, "hour": 3_600, "day": 86_400}


def text(name: str, default: str = "") -> str:
    """The variable as written, surrounding space removed; `default` when unset or blank."""
    return os.environ.get(name, "").strip() or default


def number(name: str, default: float, *, low: float, high: float) -> float:
    """A finite number within `low`..`high` (both included)."""
    raw = text(name)
    if not raw:
        return default
    try:
        value = float(raw)
    except ValueError:
        raise _refused(name, raw, f"a number from {low:g} to {high:g}") from None
    # A comparison with NaN is false, so "nan" is refused here too.
    if not low <= value <= high:
        raise _refused(name, raw, f"a number from {low:g} to {high:g}")
    return value


def integer(name: str, default: int, *, low: int, high: int) -> int:
    """A whole number within `low`..`high` (both included)."""
    raw = text(name)
    if not raw:
        return default
    try:
        value = int(raw)
    except ValueError:
        raise _refused(name, raw, f"a whole number from {low} to {high}") from None
    if not low <= value <= high:
        raise _refused(name, raw, f"a whole number from {low} to {high}")
    return value


def both(first: str, second: str, *, high: int = 10_000) -> tuple[Decimal, Decimal] | None:
    """Two amounts of money from 0 to `high` that are known together; None when neither is set."""
    if not text(first) and not text(second):
        return None
    for name in (first, second):
        if not text(name):
            raise _refused(name, "", "a number, as the other price is set")
        number(name, 0, low=0, high=high)
    return Decimal(text(first)), Decimal(text(second))


def boolean(name: str, default: bool) -> bool:
    """1/true/yes/on or 0/false/no/off, in any case; `default` when unset or blank."""
    raw = text(name)
    if not raw:
        return default
    value = raw.lower()
    if value not in TRUE | FALSE:
        raise _refused(name, raw, "one of 1, true, yes, on, 0, false, no, off")
    return value in TRUE


def choice(name: str, default: str, allowed: tuple[str, ...]) -> str:
    """One of `allowed`, in any case."""
    value = text(name, default).lower()
    if value not in allowed:
        raise _refused(name, value, "one of " + ", ".join(allowed))
    return value


def words(name: str) -> list[str]:
    """A comma-separated list; blanks are dropped."""
    return [word.strip() for word in text(name).split(",") if word.strip()]


def rate(name: str) -> tuple[int, int] | None:
    """Requests per period, e.g. 600/min, as (requests, seconds); None when unset or blank."""
    raw = text(name)
    if not raw:
        return None
    found = re.fullmatch(r"(\d{1,9})\s*/\s*(s|min|hour|day)", raw)
    if not found or int(found[1]) < 1:
        raise _refused(name, raw, "requests per s, min, hour or day, e.g. 600/min")
    return int(found[1]), PERIODS[found[2]]


def window(name: str) -> str:
    """Hours of a day as HH:MM-HH:MM, over midnight when it ends before it begins; "" when unset or blank."""
    raw = text(name)
    if raw and not WINDOW.fullmatch(raw):
        raise _refused(name, raw, "hours in UTC, e.g. 02:00-04:30")
    return raw


def _refused(name: str, value: str, allowed: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(f"{name}={value!r} is not usable: set it to {allowed}, or unset it.")
