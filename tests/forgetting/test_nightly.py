"""When a tenant's night has come: zones, changes of the clocks, and workers that were away."""

from datetime import UTC, date, datetime

from memories.queue.nightly import due_day
from tests.each import each

MONDAY, TUESDAY = date(2026, 11, 2), date(2026, 11, 3)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@each(
    ("now", "zone", "last", "due"),
    [
        ("2026-11-03 02:59", "UTC", MONDAY, None),
        ("2026-11-03 03:00", "UTC", MONDAY, TUESDAY),
        ("2026-11-03 03:05", "UTC", TUESDAY, None),
        # Nobody worked at night: later that day, and after days of absence once.
        ("2026-11-03 17:30", "UTC", MONDAY, TUESDAY),
        ("2026-11-09 04:00", "UTC", MONDAY, date(2026, 11, 9)),
        ("2026-11-09 02:00", "UTC", MONDAY, None),
        # Never yet.
        ("2026-11-03 03:00", "UTC", None, TUESDAY),
        ("2026-11-03 02:00", "UTC", None, None),
        # Far in the east it is tomorrow already, far in the west still yesterday.
        ("2026-11-02 12:59", "Pacific/Kiritimati", MONDAY, None),
        ("2026-11-02 13:00", "Pacific/Kiritimati", MONDAY, TUESDAY),
        ("2026-11-03 14:59", "Etc/GMT+12", MONDAY, None),
        ("2026-11-03 15:00", "Etc/GMT+12", MONDAY, TUESDAY),
        ("2026-11-02 19:14", "Asia/Kathmandu", MONDAY, None),
        ("2026-11-02 21:15", "Asia/Kathmandu", MONDAY, TUESDAY),
        # A zone that moved westwards over the date line: that day has had its pass.
        ("2026-11-03 15:00", "Etc/GMT+12", TUESDAY, None),
        ("2026-11-03 15:00", "Etc/GMT+12", date(2026, 11, 4), None),
        ("2026-11-03 03:00", "No/Such", MONDAY, TUESDAY),
        ("2026-11-03 03:00", "../etc/passwd", MONDAY, TUESDAY),
    ],
)
def test_when_the_night_has_come(now: str, zone: str, last: date | None, due: date | None) -> None:
    assert due_day(now=at(now), time_zone=zone, hour=3, last=last) == due


@each(
    ("now", "last", "due"),
    [
        # In Amsterdam on 29 March 2026 the clock goes from 01:59 to 03:00: 02:00 is never told.
        ("2026-03-29 00:59", date(2026, 3, 28), None),
        ("2026-03-29 01:00", date(2026, 3, 28), date(2026, 3, 29)),
        # On 25 October 02:00 to 02:59 come twice: one pass.
        ("2026-10-24 23:59", date(2026, 10, 24), None),
        ("2026-10-25 00:00", date(2026, 10, 24), date(2026, 10, 25)),
        ("2026-10-25 01:00", date(2026, 10, 25), None),
    ],
)
def test_clocks_that_change(now: str, last: date, due: date | None) -> None:
    assert due_day(now=at(now), time_zone="Europe/Amsterdam", hour=2, last=last) == due


@each("hour", [0, 23])
def test_every_hour_can_be_the_one(hour: int) -> None:
    before = datetime(2026, 11, 3, hour - 1, 59, tzinfo=UTC) if hour else datetime(2026, 11, 2, 23, 59, tzinfo=UTC)
    assert due_day(now=before, time_zone="UTC", hour=hour, last=MONDAY) is None
    assert due_day(now=datetime(2026, 11, 3, hour, tzinfo=UTC), time_zone="UTC", hour=hour, last=MONDAY) == TUESDAY
