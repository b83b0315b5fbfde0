"""Reads Retry-After (RFC 9110, section 10.2.3), which an endpoint may fill with anything."""

import math
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

_LONGEST_WAIT = 86_400.0


def seconds_to_wait(headers: Mapping[str, str]) -> float | None:
    """Seconds from 0 to a day, or None when the header is missing or senseless; a date is counted from now."""
    value = headers.get("retry-after", "")
    try:
        seconds = float(value)
    except ValueError:
        seconds = _until(value)
    return min(max(seconds, 0.0), _LONGEST_WAIT) if math.isfinite(seconds) else None


def _until(value: str) -> float:
    try:
        return parsedate_to_datetime(value).timestamp() - time.time()
    except (ValueError, OverflowError):
        return math.nan
