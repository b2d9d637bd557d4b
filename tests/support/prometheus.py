"""A real Prometheus of Debian, and its promtool."""

import json
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import servers
from broker_jars import ROOT

PROMTOOL, PROMETHEUS = shutil.which("promtool"), shutil.which("prometheus")
NO_PROMETHEUS = "no promtool or no prometheus on this host's PATH: apt-get install prometheus, as .ci/run does"
RULES = ROOT / "conf" / "prometheus" / "alerts.yml"
PATIENCE_S = 60


def promtool(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run promtool in that folder."""
    return subprocess.run(
        [PROMTOOL or "promtool", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


class Prometheus:
    """A running server that scrapes an exporter every second."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    def query(self, expression: str) -> list[Any]:
        """The vector that an expression gives now."""
        found: list[Any] = self._get("query", query=expression)["data"]["result"]
        return found

    def targets(self) -> list[Any]:
        """The scraped exporters, with the error of the last scrape."""
        found: list[Any] = self._get("targets")["data"]["activeTargets"]
        return found

    def wait_for(self, expression: str) -> list[Any]:
        """The vector once it is not empty."""
        deadline = time.monotonic() + PATIENCE_S
        while not (found := self.query(expression)):
            assert time.monotonic() < deadline, (expression, self.targets())
            time.sleep(0.2)
        return found

    def _get(self, what: str, **arguments: str) -> Any:
        url = f"{self._url}/api/v1/{what}?{urllib.parse.urlencode(arguments)}"
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
            return json.load(answer)


@contextmanager
def prometheus(folder: Path, exporter_port: int) -> Iterator[Prometheus]:
    """Prometheus with conf/prometheus/alerts.yml, which scrapes that port of this host."""
    (port,) = servers.free_ports(1)
    settings = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [{"job_name": "coop-kafka", "static_configs": [{"targets": [f"127.0.0.1:{exporter_port}"]}]}],
    }
    (folder / "prometheus.yml").write_text(json.dumps(settings))  # JSON is YAML
    places = f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}"
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [PROMETHEUS or "prometheus", *places, f"--web.listen-address=127.0.0.1:{port}"], stderr=log, stdout=log
        )
        try:
            running = Prometheus(port)
            _ready(running, process)
            yield running
        finally:
            process.kill()
            process.wait()


def _ready(running: Prometheus, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            running.targets()
        except OSError:
            assert time.monotonic() < deadline
            assert process.poll() is None, "Prometheus has ended"
            time.sleep(0.1)
        else:
            return
