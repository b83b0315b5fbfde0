"""Names of time zones, right and wrong."""

from memories.time_zones import is_zone, zone_or_utc
from tests.each import each


@each("name", ["UTC", "Asia/Shanghai", "Etc/GMT+12"])
def test_a_zone_is_itself(name: str) -> None:
    assert is_zone(name)
    assert zone_or_utc(name).key == name


@each("name", ["", "Mars/Olympus", "Asia", "../etc/passwd", "/etc/passwd", "\x00", "x" * 300, "时区"])
def test_what_is_none_counts_as_utc(name: str) -> None:
    assert not is_zone(name)
    assert zone_or_utc(name).key == "UTC"
