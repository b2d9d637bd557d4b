"""Each code block of the docs is named here: it runs in this file, or in the test or script that `ELSEWHERE` names.

Not run: installations, and two commands of Kafka's own tools. Blocks of text, or without a language, are no code.
"""

import ast
import json
import re
import shlex
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Thread
from typing import Any
from wsgiref.simple_server import WSGIServer

import mmh3
import prometheus_client
import pytest
import yaml
from prometheus_client.registry import Collector
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener
from pyspark.sql.streaming.query import StreamingQueryManager

import servers
from broker_jars import ROOT
from command_runs import Run
from coordinator.assignment.assignors.assignor import Subscriber
from coordinator.assignment.assignors.check import check
from coordinator.assignment.ownership_listener import OwnershipListener
from coordinator.errors import FunctionNotAllowedError, InvalidOptionError
from coordinator.values.key_hash import hash_key
from documented import Place, blocks, commands, ending
from served import served
from spark_coop_source.options.options import validate
from streams import DEADLINE_S, eventually, keyed
from topics import Kafka

PAGES = ["README.md", *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(?!text)(\w+)$", re.MULTILINE)
AUDITED = "50 records done, each exactly once in the sink: 0 lost, 0 repeated, 0 out of order."
README, OPERATOR = "tests/docs/test_readme.py", "tests/coordinator/tools/cli/test_operator_commands.py"
ELSEWHERE = {
    ("README.md", "console"): README,
    ("README.md", "python"): README,
    ("docs/applications.md", "python"): README,  # and here, an assignor
    ("docs/benchmarks.md", "console"): "scripts/bench",
    ("docs/commit-api.md", "python"): "tests/docs/test_commit_api.py",
    ("docs/cookbook.md", "console"): "tests/docs/test_cookbook.py",
    ("docs/cookbook.md", "python"): "tests/docs/test_cookbook.py",
    ("docs/deployment.md", "bash"): "scripts/cluster",  # and scripts/image
    ("docs/deployment.md", "console"): "scripts/cluster",
    ("docs/failing-records.md", "console"): OPERATOR,
    ("docs/failing-records.md", "python"): README,
    ("docs/getting-started.md", "console"): README,
    ("docs/getting-started.md", "python"): README,  # and test_ways_into_spark
    ("docs/getting-started.md", "sql"): "tests/end_to_end/test_ways_into_spark.py",
    ("docs/getting-started.md", "yaml"): "tests/end_to_end/test_ways_into_spark.py",
    ("docs/stateful.md", "python"): "tests/docs/test_jobs.py",
    ("docs/functions.md", "python"): README,
    ("docs/migrate.md", "python"): README,
    ("docs/operations.md", "console"): OPERATOR,
    ("docs/ordering.md", "console"): OPERATOR,
    ("docs/ordering.md", "python"): README,
    ("docs/troubleshooting.md", "console"): OPERATOR,
}
HERE = {
    ("docs/guarantees.md", "console"),
    ("docs/guarantees.md", "python"),
    ("docs/deployment.md", "python"),
    ("docs/functions.md", "console"),
    ("docs/monitoring.md", "console"),
    ("docs/monitoring.md", "json"),
    ("docs/monitoring.md", "python"),
    ("docs/monitoring.md", "yaml"),
    ("docs/migrate.md", "console"),
    ("docs/operations.md", "python"),
    ("docs/protocol.md", "json"),
    ("docs/protocol.md", "python"),
    ("docs/reference.md", "python"),
    ("docs/slow-keys.md", "python"),
}


def test_every_block_has_a_test() -> None:
    found = {(page, name) for page in PAGES for name in BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))}
    assert found == {*ELSEWHERE} | HERE
    assert not {*ELSEWHERE} & HERE


@pytest.mark.parametrize(("page", "test"), sorted({(page, test) for (page, _), test in ELSEWHERE.items()}))
def test_the_named_test_reads_the_page(page: str, test: str) -> None:
    text = (ROOT / test).read_text(encoding="utf-8")
    assert test.startswith("scripts/") or Path(page).stem in text


def collectors() -> list[Collector]:
    """Those of prometheus-client's own registry."""
    return [*prometheus_client.REGISTRY._collector_to_names]


def executed(code: str, names: Mapping[str, object]) -> dict[str, Any]:
    """The names after the code; `_` is the value of its last line. It is our own page."""
    tree = ast.parse(code)
    if isinstance(last := tree.body[-1], ast.Expr):
        value = ast.copy_location(ast.Assign([ast.Name("_", ast.Store())], last.value), last)
        tree.body[-1] = ast.fix_missing_locations(value)
    after = dict(names)
    exec(compile(tree, "a page of the docs", "exec"), after)
    return after


def test_the_assignor_of_a_page_computes_an_assignment(place: Place) -> None:
    (code,) = (each for each in blocks("docs/applications.md", "python") if "class Mine" in each)
    mine = executed(code, {})["Mine"]()
    members, partitions = [Subscriber(name, 1, frozenset({"orders"}), True) for name in "ab"], {"orders": 1}
    assignment = mine.assign(members, partitions, {})
    check(assignment, members, partitions)
    assert set(assignment) == {"a", "b"}


@pytest.mark.long
def test_the_audit_of_a_page_finds_no_fault_in_a_sink_of_its_query(spark: SparkSession, place: Place, run: Run) -> None:
    sink = str(place.folder / "lake")
    codes = blocks("docs/guarantees.md", "python")
    writing, auditing = (place.put_in(each).replace("/lake/orders", sink) for each in codes)
    stream = spark.readStream.format("coop-kafka").options(**place.options)
    writer = stream.load().writeStream.foreachBatch(executed(writing, {})["write"]).trigger(availableNow=True)
    with ending(writer.option("checkpointLocation", str(place.folder / "checkpoint")).start()) as query:
        assert query.awaitTermination(DEADLINE_S)
    (command,) = (each for each in commands("docs/guarantees.md") if each.startswith("coop-kafka audit "))
    _, *words = shlex.split(place.put_in(command).replace("/lake/orders", sink))
    code, out, _ = run(*words)
    assert (code, out.splitlines()[0]) == (0, AUDITED)
    spark.read.parquet(sink).withColumnRenamed("offset", "kafka_offset").createOrReplaceTempView("audited_orders")
    try:
        auditing = auditing.replace(f'table("{place.topic}")', 'table("audited_orders")')
        assert executed(auditing, {"spark": spark})["result"].good
    finally:
        spark.catalog.dropTempView("audited_orders")


@pytest.fixture
def listeners(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[StreamingQueryListener]]:
    """The listeners that a test adds, which end with it."""
    added, add = list[StreamingQueryListener](), StreamingQueryManager.addListener

    def remembering(manager: StreamingQueryManager, listener: StreamingQueryListener) -> None:
        added.append(listener)
        add(manager, listener)

    monkeypatch.setattr(StreamingQueryManager, "addListener", remembering)
    yield added
    for each in added:
        spark.streams.removeListener(each)


@pytest.fixture
def metrics_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[WSGIServer, Thread]]]:
    """The servers of prometheus-client that a test starts, on this host only, and its metrics; both end with it."""
    started, start, before = list[tuple[WSGIServer, Thread]](), prometheus_client.start_http_server, {*collectors()}
    monkeypatch.setattr(
        prometheus_client, "start_http_server", lambda port: started.append(start(port, addr="127.0.0.1"))
    )
    yield started
    for server, thread in started:
        server.shutdown()
        server.server_close()
        thread.join()
    for each in {*collectors()} - before:
        prometheus_client.REGISTRY.unregister(each)


def test_the_listeners_of_a_page_hear_of_a_query(
    spark: SparkSession,
    place: Place,
    capsys: pytest.CaptureFixture[str],
    listeners: list[StreamingQueryListener],
    metrics_server: list[tuple[WSGIServer, Thread]],
) -> None:
    printing, serving = blocks("docs/monitoring.md", "python")
    executed(printing, {"spark": spark})
    executed(serving.replace("9400", "0"), {"spark": spark})
    ((server, _),) = metrics_server
    writer = spark.readStream.format("coop-kafka").options(**place.options).load().writeStream.queryName("watched")
    with ending(writer.format("noop").option("checkpointLocation", str(place.folder / "checkpoint")).start()):
        url = f"http://127.0.0.1:{server.server_port}/metrics"
        eventually(lambda: "coop_kafka_query" in text_of(url), "metrics are served")
        eventually(lambda: "watched 0" in capsys.readouterr().out, "the progress is printed")
    assert len(listeners) == 2


def text_of(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return str(answer.read(), "utf-8")


def test_the_credentials_of_a_page_are_read_from_the_file(tmp_path: Path) -> None:
    (code,) = blocks("docs/deployment.md", "python")
    secret = tmp_path / "redis"
    provider = executed(code.replace("/var/run/secrets/redis", str(secret)), {})["Rotating"]()
    for password in ("first", "second"):
        secret.write_text(f"{password}\n")
        assert provider.get_credentials() == ("orders-job", password)


def test_the_servers_of_a_page_answer(place: Place) -> None:
    verbs = [each for each in commands("docs/monitoring.md") if not each.startswith(("pip ", "COOP_LOG_"))]
    for command, greeting in zip(verbs, ("Groups", "Metrics"), strict=True):
        _, verb, *flags = shlex.split(place.put_in(command))
        kept = flags[: flags.index("--listen")] if "--listen" in flags else flags
        with served(verb, rf"{greeting} at http://[\d.]+:(\d+)/.*\n", *kept) as running:
            assert text_of(f"http://127.0.0.1:{running.port}/")


@pytest.mark.long
def test_a_query_of_sparks_source_moves_over_and_back_as_the_page_shows(
    spark: SparkSession, place: Place, run: Run, group: str
) -> None:
    checkpoint = str(place.folder / "checkpoint")
    options = {name: place.options[name] for name in ("kafka.bootstrap.servers", "subscribe", "startingOffsets")}
    writer = spark.readStream.format("kafka").options(**options).load().writeStream.format("noop")
    with ending(writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()) as query:
        assert query.awaitTermination(DEADLINE_S)
    servers_of = ("--redis", place.options["redisUrl"], "--bootstrap-server", place.options["kafka.bootstrap.servers"])
    for command in (each for each in commands("docs/migrate.md") if "kafka-group:" not in each):
        here = command.replace("/data/checkpoints/orders", checkpoint).replace("orders-to-lake", group)
        _, *words = shlex.split(here.replace("orders-plain", f"{group}-plain"))
        code, out, err = run(*words, *servers_of)
        assert (code, re.search(rf"{place.topic} +0 +50\b", out) is not None) == (0, True), out + err


def test_the_listener_of_a_page_is_one(place: Place) -> None:
    (code,) = blocks("docs/operations.md", "python")
    cache = executed(code, {})["Cache"]()
    assert isinstance(cache, OwnershipListener)
    for call in (cache.on_assigned, cache.on_revoked, cache.on_lost):
        assert call({}) is None


def test_the_functions_that_a_page_allows_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    (command,) = commands("docs/functions.md")
    name, _, value = command.removeprefix("export ").partition("=")
    monkeypatch.setenv(name, value)
    options = {"kafka.bootstrap.servers": "h:1", "subscribe": "t", "functionSchema": "n long"}
    with pytest.raises(InvalidOptionError, match="cannot be imported"):
        validate(options | {"function": "acme.score:f"}, streaming=None)
    with pytest.raises(FunctionNotAllowedError):
        validate(options | {"function": "other:f"}, streaming=None)


def test_the_hash_of_a_page_is_ours() -> None:
    (code,) = blocks("docs/protocol.md", "python")
    for key in (b"", b"customer-17", bytes(range(256))):
        assert executed(code, {"mmh3": mmh3, "key": key})["_"] == hash_key(key)


def test_the_error_of_a_failed_query_is_found_as_the_page_shows(
    spark: SparkSession, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = blocks("docs/reference.md", "python")
    (port,) = servers.free_ports(1)  # nobody listens there
    options = place.options | {"redisUrl": f"redis://127.0.0.1:{port}/0", "redisMaxOutage": "1s"}
    writer = spark.readStream.format("coop-kafka").options(**options).load().writeStream.format("noop")
    with ending(writer.option("checkpointLocation", str(place.folder / "checkpoint")).start()) as query:
        executed(code, {"query": query})
    assert capsys.readouterr().out.startswith("REDIS_UNAVAILABLE ")


def test_the_record_of_a_page_is_shown(
    spark: SparkSession, kafka: Kafka, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    _, code = blocks("docs/slow-keys.md", "python")
    kafka.produce(place.topic, keyed(770, 50))
    code = place.put_in(code).replace('{"orders":', f'{{"{place.topic}":')
    executed(code, {"spark": spark})
    rows = [line for line in capsys.readouterr().out.splitlines() if place.topic in line]
    assert len(rows) == 1
    assert "|812 " in rows[0]


def test_the_key_of_a_lane_of_a_page_is_shown(
    spark: SparkSession, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _ = blocks("docs/slow-keys.md", "python")
    hashes = f"{hash_key(b'key-7'):016x}"
    executed(place.put_in(code).replace("228eafef5becb4b2", hashes), {"spark": spark})
    shown = capsys.readouterr().out
    assert [line.strip("| ") for line in shown.splitlines() if "key-" in line] == ["key-7"], shown


@pytest.mark.parametrize("page", [page for page, language in sorted(HERE) if language == "json"])
def test_json_of_a_page_is_json(page: str) -> None:
    for text in blocks(page, "json"):
        assert json.loads(text)


def test_the_configuration_of_a_page_names_the_exporter_and_its_alerts() -> None:
    (text,) = blocks("docs/monitoring.md", "yaml")
    (scrape,) = yaml.safe_load(text)["scrape_configs"]
    assert scrape == {"job_name": "coop-kafka", "static_configs": [{"targets": ["localhost:9308"]}]}
    assert (ROOT / "conf" / "prometheus" / yaml.safe_load(text)["rule_files"][0]).is_file()
