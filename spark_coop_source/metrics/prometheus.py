"""Our part of `lastProgress` as metrics of Prometheus. Needs the extra `metrics` (prometheus-client).

    metrics = ProgressMetrics()
    start_http_server(9400)
    spark.streams.addListener(ProgressListener(metrics))

A scrape returns the last progress of each query that runs. No label carries a key.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from threading import Lock

from coordinator.errors import EnvironmentMismatchError
from spark_coop_source.metrics.query_progress import ATTRIBUTES, QueryProgress

try:
    from prometheus_client import REGISTRY, CollectorRegistry
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
    from prometheus_client.registry import Collector
except ModuleNotFoundError:
    raise EnvironmentMismatchError(
        "the metrics of a query need the package prometheus_client, which is not installed",
        'pip install "coop-kafka[metrics]"',
    ) from None

LABELS = ("query", "group", "source")
"""The name of the query, or its id if it has no name; the group, empty without one; the number of the read."""


@dataclass(frozen=True, slots=True)
class Family:
    """A metric of one field of the report; its name without the prefix is the field's name in `QueryProgress`."""

    field: str
    help: str
    counter: bool = False

    @property
    def name(self) -> str:
        """Without the prefix, and without `_total`."""
        return ATTRIBUTES[self.field]


FAMILIES = (
    Family("minOffsetsBehindLatest", "Smallest lag of a partition, in offsets."),
    Family("maxOffsetsBehindLatest", "Largest lag of a partition, in offsets."),
    Family("avgOffsetsBehindLatest", "Mean lag of the partitions, in offsets."),
    Family("lanes", "Lanes of the last plan."),
    Family("limitedLanes", "Lanes that a limit stops before the end offset."),
    Family("parkedLanes", "Lanes that no member reads until an operator releases them."),
    Family("deferredKeys", "Keys of the group that wait for another attempt."),
    Family("parkedKeys", "Keys of the group that wait for a release."),
    Family("filteredRecords", "Records that filters dropped since the query started.", counter=True),
    Family("skippedRecords", "Records that were left out since the query started.", counter=True),
    Family("deadLetteredRecords", "Dead letters since the query started.", counter=True),
)
PREFIX = "coop_kafka_query_"
LOG_ENDS = f"{PREFIX}log_end_offset"


class ProgressMetrics(Collector):
    """The callback of a `ProgressListener`, and a collector of Prometheus."""

    def __init__(self, registry: CollectorRegistry | None = REGISTRY) -> None:
        """Registers itself; None: register it yourself."""
        self._lock = Lock()
        self._last: dict[tuple[str, int], QueryProgress] = {}
        if registry is not None:
            registry.register(self)

    def __call__(self, progress: QueryProgress) -> None:
        """Keep the last progress of each read. Spark's listener thread."""
        with self._lock:
            self._last[progress.run_id, progress.source] = progress

    def ended(self, run_id: str) -> None:
        """Forget a query. Spark's listener thread."""
        with self._lock:
            self._last = {key: progress for key, progress in self._last.items() if key[0] != run_id}

    def collect(self) -> Iterable[Metric]:
        """The metrics of all queries at work; a value that a query does not report is absent. The server's thread."""
        with self._lock:
            last = [*self._last.values()]
        for family in FAMILIES:
            made = CounterMetricFamily if family.counter else GaugeMetricFamily
            metric = made(f"{PREFIX}{family.name}", family.help, labels=LABELS)
            for progress in last:
                if (value := getattr(progress, family.name)) is not None:
                    metric.add_metric(_labels(progress), value)
            yield metric
        yield _log_ends(last)

    def describe(self) -> Iterable[Metric]:
        """No metric before the first progress; the registry asks for names when it registers."""
        return ()


def _log_ends(last: Iterable[QueryProgress]) -> Metric:
    metric = GaugeMetricFamily(LOG_ENDS, "End offset at the last look.", labels=(*LABELS, "topic", "partition"))
    for progress in last:
        for (topic, partition), end in progress.log_ends.items():
            metric.add_metric((*_labels(progress), topic, str(partition)), end)
    return metric


def _labels(progress: QueryProgress) -> tuple[str, ...]:
    return progress.name or progress.query_id, progress.group or "", str(progress.source)
