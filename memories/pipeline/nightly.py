"""When a tenant's night has come: once a day, from an hour of its own zone on, or later if nobody worked then."""

from datetime import date, datetime

from memories.pipeline.zones import zone_or_utc


def due_day(*, now: datetime, time_zone: str, hour: int, last: date | None) -> date | None:
    """The tenant's own day whose pass is due; None before that hour, and when the day has had its pass.

    An hour that a change of clocks leaves out is over once a later one is told; one that comes twice counts once. A
    zone that does not exist is UTC.
    """
    local = now.astimezone(zone_or_utc(time_zone))
    if local.hour < hour or (last is not None and last >= local.date()):
        return None
    return local.date()
