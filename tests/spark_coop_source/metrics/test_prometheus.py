"""The metrics of queries, as a real scrape of prometheus-client returns them."""

import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.parser import text_string_to_metric_families

from pages.progress_page import markdown
from spark_coop_source.metrics.prometheus import FAMILIES, LABELS, PREFIX, ProgressMetrics
from spark_coop_source.metrics.query_progress import QueryProgress

FULL = QueryProgress(
    query_id="q-1",
    run_id="r-1",
    name="to_lake",
    source=0,
    batch_id=7,
    group='g "\n\\',
    log_ends={("orders", 0): 50, ("orders", 1): 60},
    min_offsets_behind_latest=5.0,
    max_offsets_behind_latest=45.0,
    avg_offsets_behind_latest=25.5,
    lanes=8,
    limited_lanes=1,
    parked_lanes=0,
    filtered_records=7,
    skipped_records=3,
    dead_lettered_records=4,
    deferred_keys=1,
    parked_keys=2,
)
Sample = tuple[str, tuple[str, ...]]


def _in_order(labels: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(labels[name] for name in (*LABELS, "topic", "partition") if name in labels)


class Scraped:
    """A server of metrics."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        self.metrics = ProgressMetrics(registry)
        self.server, self.thread = start_http_server(0, addr="127.0.0.1", registry=registry)

    def samples(self) -> dict[Sample, float]:
        """Name without the prefix and values of the labels -> value."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.server.server_port}/metrics") as answer:
            text = answer.read().decode()
        families = text_string_to_metric_families(text)
        found = [sample for family in families for sample in family.samples]
        return {(s.name.removeprefix(PREFIX), _in_order(s.labels)): s.value for s in found}


@pytest.fixture
def scraped() -> Iterator[Scraped]:
    made = Scraped()
    yield made
    made.server.shutdown()
    made.server.server_close()
    made.thread.join()


def test_before_the_first_progress_there_is_no_value(scraped: Scraped) -> None:
    assert scraped.samples() == {}


def test_every_number_of_a_progress_is_a_sample_with_the_query_its_group_and_the_read(scraped: Scraped) -> None:
    scraped.metrics(FULL)
    labels = "to_lake", 'g "\n\\', "0"
    assert scraped.samples() == {
        ("min_offsets_behind_latest", labels): 5.0,
        ("max_offsets_behind_latest", labels): 45.0,
        ("avg_offsets_behind_latest", labels): 25.5,
        ("lanes", labels): 8.0,
        ("limited_lanes", labels): 1.0,
        ("parked_lanes", labels): 0.0,
        ("filtered_records_total", labels): 7.0,
        ("skipped_records_total", labels): 3.0,
        ("dead_lettered_records_total", labels): 4.0,
        ("deferred_keys", labels): 1.0,
        ("parked_keys", labels): 2.0,
        ("log_end_offset", (*labels, "orders", "0")): 50.0,
        ("log_end_offset", (*labels, "orders", "1")): 60.0,
    }


def test_the_last_progress_of_each_query_counts_until_it_ends(scraped: Scraped) -> None:
    other = QueryProgress("q-2", "r-2", None, 0, 1, None, lanes=3)
    for progress in (FULL, replace(FULL, lanes=9), other):
        scraped.metrics(progress)
    lanes = {labels: value for (name, labels), value in scraped.samples().items() if name == "lanes"}
    assert lanes == {("to_lake", 'g "\n\\', "0"): 9.0, ("q-2", "", "0"): 3.0}
    scraped.metrics.ended("r-1")
    assert scraped.samples() == {("lanes", ("q-2", "", "0")): 3.0}


def test_every_metric_and_every_label_is_on_the_page() -> None:
    page = markdown()
    names = [f"{PREFIX}{family.name}{'_total' if family.counter else ''}" for family in FAMILIES]
    assert [name for name in names if f"`{name}`" not in page] == []
    assert [label for label in LABELS if f"| `{label}` |" not in page] == []


def test_without_the_extra_the_error_names_the_package_to_install() -> None:
    program = "import sys\nsys.modules['prometheus_client'] = None\nimport spark_coop_source.metrics.prometheus"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert "ENVIRONMENT_MISMATCH: the metrics of a query need the package prometheus_client" in done.stderr
    assert "coop-kafka[metrics]" in done.stderr
