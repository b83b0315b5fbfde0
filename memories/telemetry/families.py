"""What is counted: families of Prometheus, each with the values that its labels can have.

Labels are of a fixed set: routes and not paths, codes and not messages, nobody's id. Series whose labels are known are
at zero from the start, so that the first error after it is an increase.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from itertools import product
from threading import Lock
from typing import Any

from prometheus_client import Counter, Histogram, values
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric

from memories.telemetry import slots

# Seconds of requests, contexts and searches.
QUICK = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
# Seconds of calls of language models.
SLOW = (0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 60.0, 120.0)
TOKENS = (0.0, 100.0, 250.0, 500.0, 1_000.0, 2_000.0, 4_000.0, 8_000.0)

# Where a request says when the web server had all of it: waiting for a thread counts, a slow client does not.
WHOLE_AT = "memoryhub.whole_at"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
Labels = tuple[str, ...]


@cache
def _count_in_slots() -> None:
    """The library would name files by process ids, and those of killed processes would stay for ever."""
    library: Any = values
    library.ValueClass = library.MultiProcessValue(process_identifier=slots.own.name)


class Family:
    """A counter, or with `buckets` a histogram. `labels`: the values of each label, if all combinations of them can
    come; `expect` names others."""

    all: "list[Family]" = []

    def __init__(self, name: str, says: str, *, buckets: tuple[float, ...] = (), **labels: Iterable[str]) -> None:
        self.name, self.says, self.buckets = f"memoryhub_{name}", says, buckets
        self.labels = tuple(labels)
        self._expected: set[Labels] = set(product(*labels.values()))
        self._series: dict[Labels, Any] = {}
        self._lock = Lock()
        kind: Any = partial(Histogram, buckets=buckets) if buckets else Counter
        self._make: Callable[[], Any] = partial(kind, self.name, says, self.labels, registry=None)
        self._metric: Any = None
        Family.all.append(self)

    def expect(self, series: Iterable[Labels]) -> None:
        """Name series that are at zero until something is counted."""
        self._expected |= set(series)

    def count(self, *labels: str, by: float = 1) -> None:
        if slots.own.name():
            self._of(labels).inc(by)

    def observe(self, value: float, *labels: str) -> None:
        if slots.own.name():
            self._of(labels).observe(value)

    def _of(self, labels: Labels) -> Any:
        series = self._series.get(labels)
        if series is None:
            with self._lock:
                # Not before something is counted: without labels this already makes files.
                _count_in_slots()
                self._metric = self._metric or self._make()
                series = self._metric.labels(*labels) if labels else self._metric
                self._series[labels] = series
        return series

    def at_zero(self, found: Iterable[Labels]) -> Iterator[tuple[Labels, Metric]]:
        """A family of each expected series that is not among those found."""
        for labels in sorted(self._expected - set(found)):
            yield labels, self._zero(labels)

    def _zero(self, labels: Labels) -> Metric:
        family: Any
        if self.buckets:
            family = HistogramMetricFamily(self.name, self.says, labels=self.labels)
            limits = [*(str(float(limit)) for limit in self.buckets), "+Inf"]
            family.add_metric(labels, [(limit, 0.0) for limit in limits], 0.0)
        else:
            family = CounterMetricFamily(self.name, self.says, labels=self.labels)
            family.add_metric(labels, 0.0)
        return family  # type: ignore[no-any-return]


# Routes: see memories/api/counting.py.
REQUESTS = Family("requests", "Answers, by route, method and class of status.", route=(), method=(), status=())
REQUEST_SECONDS = Family("request_seconds", "From the request to its answer.", buckets=QUICK, route=())
DOORS = ("api", "gateway", "mcp", "admin", "inside")
ADMITTED_SECONDS = Family(
    "admission_wait_seconds", "For how long a request waited for a thread.", buckets=QUICK, door=DOORS
)
REFUSED = Family("admission_refused", "Requests that would have waited too long for a thread.", route=())
CONTEXT_SECONDS = Family("context_seconds", "To build a context.", buckets=QUICK)
CONTEXT_TOKENS = Family("context_tokens", "Tokens of a context.", buckets=TOKENS)
SEARCH_SECONDS = Family("search_seconds", "To search one person's memory.", buckets=QUICK)
TURNS = Family("turns", "Turns that were posted: stored, or known before.", result=("stored", "duplicate"))
TRAJECTORIES = Family(
    "trajectories", "Trajectories that were posted: stored, or known before.", result=("stored", "duplicate")
)
GATEWAY = Family(
    "gateway_memory",
    "Requests through the gateway, by whether they got memory, or why not.",
    result=("used", "empty", "error", "no_user", "off", "restricted", "timeout", "unreadable"),
)
MCP_CALLS = Family("mcp_calls", "Calls of tools by MCP.", tool=(), result=())
INDEX = Family(
    "index_lookups",
    "Lookups of a person's index in a process: found, or made from rows.",
    index=("facts", "memories", "turns"),
    result=("hit", "miss"),
)
MODEL_SECONDS = Family("model_call_seconds", "Of one question to a language model.", buckets=SLOW, prompt=())
MODEL_FAILURES = Family("model_failures", "Questions without an answer, by code.", prompt=(), code=())
ATTEMPTS = Family(
    "attempts",
    "Attempts of workers at a session's work.",
    queue=("extraction", "working_memory"),
    result=("committed", "failed", "parked"),
)
FAILURES = Family("attempt_failures", "Attempts that failed or were parked, by code.", queue=(), code=())


def note_request(route: str, method: str, status: int, seconds: float) -> None:
    """Count an answer. The status is 0 when the client left before it."""
    REQUESTS.count(route, method if method in METHODS else "other", f"{status // 100}xx" if status else "none")
    REQUEST_SECONDS.observe(seconds, route)


def collect() -> Iterator[Metric]:
    """What all processes of this home have counted, and what none has counted yet at zero."""
    found = {family.name: family for family in slots.counted()}
    for family in Family.all:
        counted = found.get(family.name) or _like(family)
        keys = {tuple(one.labels.get(name, "") for name in family.labels) for one in counted.samples}
        for _labels, zero in family.at_zero(keys):
            counted.samples.extend(zero.samples)
        yield counted


def _like(family: Family) -> Metric:
    return Metric(family.name, family.says, "histogram" if family.buckets else "counter")
