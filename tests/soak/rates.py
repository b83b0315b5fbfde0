"""How much was done each second, and how soon after a fault as much as before."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.soak.journal import Line, of_kind

SHARE = 0.95
RECOVERED_SECONDS = 15.0
# Requests, and turns that the model read, which come in batches.
WINDOW, LONG_WINDOW = 5.0, 10.0
STEP = 0.5
# After the start, and after a fault, until a window counts as calm.
SETTLING_SECONDS = 20.0
# Before a fault: what was calm then, of so many windows. Other work on the machine takes more at times.
BEFORE_SECONDS, LEAST_WINDOWS = 300.0, 6


@dataclass(frozen=True)
class Rates:
    """Moments of what was done, and the rate a second of each window without a fault, by its start."""

    moments: Sequence[float]
    calm_windows: Mapping[float, float]
    window: float

    @property
    def calm(self) -> float:
        """The median of the whole soak."""
        return statistics.median(self.calm_windows.values()) if self.calm_windows else 0.0

    def calm_before(self, moment: float) -> float:
        """The median of the five minutes before a moment; of the whole soak where too few of them were calm."""
        before = [rate for start, rate in self.calm_windows.items() if moment - BEFORE_SECONDS <= start < moment]
        return statistics.median(before) if len(before) >= LEAST_WINDOWS else self.calm

    def after(self, moment: float, until: float) -> float | None:
        """Seconds from there to the first window with the rate that was calm before; None: none before `until`."""
        calm = self.calm_before(moment)
        for place in range(int(max(0.0, until - self.window - moment) / STEP) + 1):
            start = moment + place * STEP
            if self.within(start) >= SHARE * calm:
                return start - moment
        return None

    def within(self, start: float) -> float:
        return sum(start <= moment < start + self.window for moment in self.moments) / self.window


def rates(moments: Iterable[float], faults: Sequence[Line], *, until: float, window: float) -> Rates:
    """Of these moments; faults have `began` and `ended`."""
    known = sorted(moments)
    plain = Rates(known, {}, window)
    starts = [SETTLING_SECONDS + place * window for place in range(int((until - SETTLING_SECONDS) / window))]
    calm = {
        start: plain.within(start)
        for start in starts
        if not any(start + window > fault["began"] and start < fault["ended"] + SETTLING_SECONDS for fault in faults)
    }
    return Rates(known, calm, window)


# Of the clients that keep a pace.
STEADY = ("turns", "context", "search", "chat", "tool", "state", "look")


def requests(journals: dict[str, list[Line]]) -> list[float]:
    """When requests were accepted."""
    return [line["at"] for line in of_kind(journals, *STEADY) if 200 <= line["status"] < 300]


def turns_read(journals: dict[str, list[Line]]) -> list[float]:
    """When the model was given a turn of a person and answered."""
    return [line["at"] for line in of_kind(journals, "asked") for _ in range(line["read"])]


@dataclass(frozen=True)
class Recovery:
    """Of one fault: seconds until requests, and turns read by the model, were as many as in calm; None: not seen."""

    fault: Line
    requests: float | None
    work: float | None


def recoveries(journals: dict[str, list[Line]]) -> tuple[Rates, Rates, list[Recovery]]:
    faults = list(of_kind(journals, "fault"))
    [ended] = [line["at"] for line in of_kind(journals, "traffic ended")]
    asked = rates(requests(journals), faults, until=ended, window=WINDOW)
    work = rates(turns_read(journals), faults, until=ended, window=LONG_WINDOW)
    ends = [*(fault["began"] for fault in faults[1:]), ended]
    found = [
        Recovery(fault, asked.after(fault["ended"], end), work.after(fault["ended"], end))
        for fault, end in zip(faults, ends, strict=True)
    ]
    return asked, work, found
