"""Times as other systems write them: seconds or milliseconds since 1970, ISO-8601, days, dates of JSON of databases."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from math import isfinite
from typing import Any

_LAST = datetime(9999, 12, 30, tzinfo=UTC)
# So often what is more is in units of a thousandth: up to nanoseconds.
_UNITS = 3
# A day of eight digits is none.
_NUMBER = re.compile(r"-?(?!(?:19|20)\d{6}\Z)[0-9]+(?:\.[0-9]*)?")
# Seconds up to the year 5138; what is more is in smaller units.
_MOST_SECONDS = 100_000_000_000


def moment(value: Any, zone: tzinfo | None = UTC) -> datetime | None:
    """The time in UTC; one without a zone is in `zone`, None: that of this machine. None for what is none."""
    try:
        if isinstance(value, dict):
            # MongoDB's: {"$date": {"$numberLong": "…"}}
            return moment(next(iter(value.values()), None), zone)
        if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
            value = float(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return _since_1970(float(value))
        at = datetime.fromisoformat(value.strip()) if isinstance(value, str) else value
        if not isinstance(at, datetime):
            return None
        if zone and not at.tzinfo:
            at = at.replace(tzinfo=zone)
        return at.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None


def end(value: Any, zone: tzinfo | None = UTC) -> datetime | None:
    """When what ends then is over: of a day alone, the next one."""
    found = moment(value, zone)
    is_day = isinstance(value, str) and len(value.strip()) == len("2026-01-31")
    if not (found and is_day):
        return found
    # The last day of all has no next one.
    return found + timedelta(days=1) if found < _LAST else found


def _since_1970(value: float) -> datetime:
    if not isfinite(value):
        raise ValueError
    for _ in range(_UNITS):
        value = value / 1000 if abs(value) >= _MOST_SECONDS else value
    return datetime.fromtimestamp(value, UTC)
