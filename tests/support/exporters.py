"""A running `coop-kafka exporter`, and its scrapes."""

import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from prometheus_client.parser import text_string_to_metric_families

from broker_jars import ROOT

PATIENCE_S = 30


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


class Exporter:
    """The process, and the address that it has printed."""

    def __init__(self, process: "subprocess.Popen[str]", port: int) -> None:
        self.process, self.port = process, port

    def scrape(self) -> Scrape:
        """One scrape, as Prometheus makes it."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=PATIENCE_S) as answer:
            assert answer.status == 200
            return Scrape(answer.read().decode())

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """A signal; the exit code, and stderr."""
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, err


@contextmanager
def exporter(redis_url: str, bootstrap: str) -> Iterator[Exporter]:
    """An exporter on a free port."""
    command = [sys.executable, "-m", "spark_coop_source.command_line", "exporter", "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(
        [*command, "--redis", redis_url, "--bootstrap-server", bootstrap],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(r"Metrics at http://127\.0\.0\.1:(\d+)/metrics\n", line)
        assert found, (line, process.stderr and process.stderr.read())
        yield Exporter(process, int(found[1]))
    finally:
        process.kill()
        process.communicate()
