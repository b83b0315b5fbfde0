"""Time zones by their IANA names, as tenants, people and operators give them."""

from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones


def is_zone(name: str) -> bool:
    return name in _names()


def zone_or_utc(name: str) -> ZoneInfo:
    """The zone of this name; UTC if this host does not know it."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo("UTC")


@cache
def _names() -> set[str]:
    # Cached: it opens every file of the zones.
    return available_timezones()
