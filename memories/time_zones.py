"""Time zones by their IANA names, as tenants, people and operators give them."""

from datetime import datetime, tzinfo
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


def day_of(moment: datetime, zone: tzinfo) -> str:
    """The day of the moment in this zone, as 2026-11-03."""
    return moment.astimezone(zone).date().isoformat()


@cache
def _names() -> set[str]:
    # Cached: it opens every file of the zones.
    return available_timezones()
