"""A running `coop-kafka exporter`, and its scrapes."""

import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from prometheus_client.parser import text_string_to_metric_families

from served import PATIENCE_S, Served, served


class Scrape:
    """The samples of one answer."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._values = {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def __call__(self, name: str, **labels: str) -> float | None:
        """The value of one sample; None if it is absent."""
        return self._values.get((name, tuple(sorted(labels.items()))))

    def labels(self, name: str) -> list[Mapping[str, str]]:
        """The labels of each sample of a metric."""
        return [dict(labels) for found, labels in self._values if found == name]

    @property
    def names(self) -> set[str]:
        """The names of all samples."""
        return {name for name, _ in self._values}


class Exporter(Served):
    """The process, and its scrapes."""

    def scrape(self) -> Scrape:
        """One scrape, as Prometheus makes it."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=PATIENCE_S) as answer:
            assert answer.status == 200
            return Scrape(answer.read().decode())


@contextmanager
def exporter(redis_url: str, bootstrap: str, *options: str) -> Iterator[Exporter]:
    """An exporter on a free port."""
    line = r"Metrics at http://127\.0\.0\.1:(\d+)/metrics\n"
    with served("exporter", line, "--redis", redis_url, "--bootstrap-server", bootstrap, *options) as running:
        yield Exporter(running.process, running.port)
