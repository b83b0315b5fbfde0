"""Strict readers of environment variables: an invalid value stops the start with a message of what is allowed."""

import os
import re
import secrets
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

Limit = TypeVar("Limit", int, float)
TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off"})
WINDOW = re.compile(r"(?:[01]\d|2[0-3]):[0-5]\d-(?:[01]\d|2[0-3]):[0-5]\d")
MAIL_PORTS = {"smtp": 25, "smtp+tls": 587, "smtps": 465}
PERIODS = {"s": 1, "min": 60, "hour": 3_600, "day": 86_400}


def text(name: str, default: str = "") -> str:
    """The stripped value; `default` if unset or blank."""
    return os.environ.get(name, "").strip() or default


def secret(name: str, path: Path) -> str:
    """The value, or a random text that the first start writes to this file (mode 0600)."""
    configured = text(name)
    if configured:
        return configured
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    if not path.exists():
        draft.touch(mode=0o600)
        draft.write_text(secrets.token_urlsafe(50), encoding="utf-8")
        try:
            # Two processes may start at once. link() fails for the second, which then reads the first one's key.
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text(encoding="utf-8").strip()


def number(name: str, default: float, *, low: float, high: float) -> float:
    """A finite number within `low`..`high` (both included)."""
    return _within(name, default, float, low=low, high=high, allowed=f"a number from {low:g} to {high:g}")


def integer(name: str, default: int, *, low: int, high: int) -> int:
    """A whole number within `low`..`high` (both included)."""
    return _within(name, default, int, low=low, high=high, allowed=f"a whole number from {low} to {high}")


def _within(
    name: str, default: Limit, parse: Callable[[str], Limit], *, low: Limit, high: Limit, allowed: str
) -> Limit:
    raw = text(name)
    if not raw:
        return default
    try:
        value = parse(raw)
    except ValueError:
        raise _error(name, raw, allowed) from None
    # Comparisons with NaN are false: this rejects "nan", too.
    if not low <= value <= high:
        raise _error(name, raw, allowed)
    return value


def both(first: str, second: str, *, high: int = 10_000) -> tuple[Decimal, Decimal] | None:
    """Two prices from 0 to `high`. Both must be set, or neither: then None."""
    if not text(first) and not text(second):
        return None
    for name in (first, second):
        if not text(name):
            raise _error(name, "", "a number, as the other price is set")
        number(name, 0, low=0, high=high)
    return Decimal(text(first)), Decimal(text(second))


class MailServer(NamedTuple):
    host: str
    port: int
    user: str = ""
    password: str = ""
    starts_tls: bool = False
    # From the first byte on.
    is_tls: bool = False


NO_MAIL = MailServer("localhost", 25)


def mail_server(name: str) -> MailServer | None:
    """A server like smtp+tls://user:password@mail.example.com:587; None if unset or blank.

    The message of an error leaves the value out, as it can hold a password.
    """
    raw = text(name)
    if not raw:
        return None
    try:
        parts = urlsplit(raw)
        port = parts.port or MAIL_PORTS[parts.scheme]
        if not parts.hostname or parts.path.strip("/") or parts.query or parts.fragment:
            raise ValueError
    except (KeyError, ValueError):
        allowed = "smtp://, smtp+tls:// (STARTTLS) or smtps:// (TLS) with user:password@ if needed, a host and a port"
        raise ImproperlyConfigured(f"{name} is not usable. Allowed: {allowed}.") from None
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return MailServer(parts.hostname, port, user, password, parts.scheme == "smtp+tls", parts.scheme == "smtps")


def boolean(name: str, default: bool) -> bool:
    """1/true/yes/on or 0/false/no/off, in any case; `default` if unset or blank."""
    raw = text(name)
    if not raw:
        return default
    value = raw.lower()
    if value not in TRUE | FALSE:
        raise _error(name, raw, "one of 1, true, yes, on, 0, false, no, off")
    return value in TRUE


def choice(name: str, default: str, allowed: tuple[str, ...]) -> str:
    """One of `allowed`, in any case."""
    value = text(name, default).lower()
    if value not in allowed:
        raise _error(name, value, "one of " + ", ".join(allowed))
    return value


def words(name: str) -> list[str]:
    """A comma-separated list without blanks."""
    return [word.strip() for word in text(name).split(",") if word.strip()]


def rate(name: str) -> tuple[int, int] | None:
    """Requests per period, e.g. 600/min, as (requests, seconds); None if unset or blank."""
    raw = text(name)
    if not raw:
        return None
    found = re.fullmatch(r"(\d{1,9})\s*/\s*(s|min|hour|day)", raw)
    if not found or int(found[1]) < 1:
        raise _error(name, raw, "requests per s, min, hour or day, e.g. 600/min")
    return int(found[1]), PERIODS[found[2]]


def window(name: str) -> str:
    """Hours as HH:MM-HH:MM, across midnight if the end is before the start; "" if unset or blank."""
    raw = text(name)
    if raw and not WINDOW.fullmatch(raw):
        raise _error(name, raw, "hours in UTC, e.g. 02:00-04:30")
    return raw


def _error(name: str, value: str, allowed: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(f"{name}={value!r} is not usable: set it to {allowed}, or unset it.")
