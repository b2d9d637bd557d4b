"""Serves the metrics over HTTP, in Prometheus' text format. Each scrape is a new look; scrapes come one by one."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Lock

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from coordinator.progress.end_history import EndHistory
from coordinator.tools.exporter.look import Watcher
from coordinator.tools.exporter.metrics import METRICS
from coordinator.tools.exporter.samples import Sample, samples
from coordinator.values.subscription import TopicPartition


class GroupCollector(Collector):
    """Looks and converts, at each scrape. Safe for several threads."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher, self._history, self._one = watcher, EndHistory(), Lock()

    def describe(self) -> Iterable[Metric]:
        """Nothing: else the registry would scrape in order to learn the names."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """The families of one look."""
        with self._one:
            look, now_ms = self._watcher.look(), time.monotonic_ns() // 1_000_000
            if look.ends is not None:
                self._history.saw(look.ends, now_ms)

            def age_of(tp: TopicPartition, position: int) -> float | None:
                behind = self._history.behind_ms(tp, position, now_ms)
                return None if behind is None else behind[0] / 1_000

            yield from families(samples(look, age_of))


def families(found: Iterable[Sample]) -> list[Metric]:
    """The samples by metric, in the form of prometheus-client; metrics without a sample too."""
    by_name = {
        m.name: (CounterMetricFamily if m.kind == "counter" else GaugeMetricFamily)(m.name, m.meaning, labels=m.labels)
        for m in METRICS
    }
    for metric, labels, value in found:
        by_name[metric.name].add_metric([*map(label, labels)], float(value))
    return [*by_name.values()]


def label(text: str) -> str:
    """A text as Prometheus takes it: it ends a scrape at a NUL, and takes only UTF-8."""
    return text.replace("\0", "\N{SYMBOL FOR NULL}").encode(errors="replace").decode()


@contextmanager
def serving(host: str, port: int, watcher: Watcher) -> Iterator[int]:
    """Serve until the end of the block. Yields the port, which is another one for port 0.

    Raises `OSError` if the address cannot be used.
    """
    registry = CollectorRegistry()
    registry.register(GroupCollector(watcher))
    server, thread = start_http_server(port, host, registry)
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
