"""The programs of docs/jobs, the most common jobs, executed as they stand, each with its output."""

import asyncio
import json
import re
import sqlite3
import sys
import urllib.request
from contextlib import closing
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import pytest
from pyspark import cloudpickle

from broker_jars import ROOT
from coordinator.redis.commits import CommittedOffsets
from coordinator.values.key_hash import hash_key
from coordinator.values.subscription import TopicPartition
from documented import LAST, PROGRAMS, Kitchen, blocks, commands, program
from json_service import service
from streams import eventually, keyed
from topics import Kafka, Record

SHOWN_ON = {
    "read": "docs/getting-started.md",
    "stream": "README.md",
    "enrich": "docs/cookbook.md",
    "dead_letters": "docs/cookbook.md",
    "acknowledge": "docs/commit-api.md",
    "two_applications": "docs/cookbook.md",
    "pinned": "docs/applications.md",
    "stateful": "docs/cookbook.md",
    "backfill": "docs/cookbook.md",
    "join": "docs/stateful.md",
}
LAST_OF_A_QUARTER = 2**61 - 1


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite's files lie in the working directory."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", SHOWN_ON)
def test_a_page_shows_the_program_itself(name: str) -> None:
    assert [program(code) for code in blocks(SHOWN_ON[name], "python")].count(name) == 1
    assert len(PROGRAMS[name].splitlines()) <= 40
    stream = "readStream" in PROGRAMS[name] and "availableNow" not in PROGRAMS[name]
    assert PROGRAMS[name].endswith(f"\n{LAST}\n") is stream


def test_every_program_is_here_and_the_cookbook_links_it() -> None:
    assert PROGRAMS.keys() == SHOWN_ON.keys()
    cookbook = (ROOT / "docs" / "cookbook.md").read_text(encoding="utf-8")
    assert [name for name in PROGRAMS if f"(jobs/{name}.py)" not in cookbook] == []


def test_read_counts_the_records_of_each_partition(kitchen: Kitchen, capsys: pytest.CaptureFixture[str]) -> None:
    kitchen.cook(PROGRAMS["read"])
    assert "|        0|   50|" in capsys.readouterr().out


def test_stream_writes_every_record_once(kitchen: Kitchen) -> None:
    kitchen.cook(PROGRAMS["stream"])
    assert sorted(row["offset"] for row in kitchen.rows("orders.parquet")) == [*range(50)]


def httpx() -> ModuleType:
    """As much of httpx as the program needs: the tests do not install it."""

    class Client:
        async def __aenter__(self) -> Self:
            return self

        async def __aexit__(self, *raised: object) -> None:
            pass

        async def post(self, url: str, json: list[str]) -> Any:
            return await asyncio.to_thread(asked, url, json)

    def asked(url: str, texts: list[str]) -> Any:
        with urllib.request.urlopen(url, json.dumps(texts).encode(), timeout=30) as answer:
            return Answer(answer.read())

    class Answer:
        def __init__(self, body: bytes) -> None:
            self.json = partial(json.loads, body)

        def raise_for_status(self) -> None:
            pass

    module = ModuleType("httpx")
    module.AsyncClient = Client  # type: ignore[attr-defined]
    return module


def scores(_path: str, body: bytes) -> tuple[int, list[float]]:
    """Half of each number."""
    return 200, [float(text) / 2 for text in json.loads(body)]


def test_enrich_asks_the_service_about_each_record(kitchen: Kitchen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", module := httpx())
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    try:
        with service(scores) as server:
            kitchen.here = {"http://scores:8080": server.url}
            kitchen.cook(PROGRAMS["enrich"])
    finally:
        cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]
    rows = kitchen.rows("lake/scores")
    assert sorted((row["offset"], row["score"]) for row in rows) == [(n, n / 2) for n in range(50)]


def test_dead_letters_go_back_once_the_function_is_mended(kitchen: Kitchen, kafka: Kafka) -> None:
    kitchen.here = {"orders-dead": kafka.create_topic("dead")}
    kafka.produce(kitchen.topic, [Record(b"no number", b"key-1"), Record(b"7", b"key-1")])
    kitchen.cook(PROGRAMS["dead_letters"])
    assert {row["offset"] for row in kitchen.rows("lake/amounts")} == {*range(52)} - {50}
    (command,) = (each for each in commands("docs/cookbook.md") if "orders-to-amounts" in each)
    code, out, err = kitchen.run(command)
    assert (code, "1 record" in out) == (0, True), err


def test_acknowledge_commits_rows_before_their_batch_ends(kitchen: Kitchen) -> None:
    seen: list[tuple[str, CommittedOffsets]] = []
    names: dict[str, Any] = {}

    def heard(value: str) -> None:
        seen.append((value, names["commits"].committed(TopicPartition(kitchen.topic, 0))))

    kitchen.cook(PROGRAMS["acknowledge"], names, print=heard)
    assert sorted(int(value) for value, _ in seen) == [*range(50)]
    _, before_the_last = seen[-1]
    assert any(part.done or part.position for part in before_the_last.ranges)
    names["commits"].close()


def test_two_applications_share_the_topic(kitchen: Kitchen, kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    kitchen.here = {"**group,": '**group, allowSeveralQueries="true",'}  # one Spark session is one application
    for app in "ab":
        monkeypatch.setenv("APP", app)
        kitchen.start(PROGRAMS["two_applications"])

    def both_own() -> bool:
        _, out, _ = kitchen.run("coop-kafka describe orders-to-both")
        members = re.findall(r"^(m-\w+) .* app=[ab] *$", out, re.MULTILINE)
        return len(members) == 2 and all(out.count(member) > 1 for member in members)

    eventually(both_own, "each application owns a range")
    kafka.produce(kitchen.topic, keyed(400, 50))
    kitchen.finish()
    a, b = ({row["offset"] for row in kitchen.rows(f"lake/both-{app}")} for app in "ab")
    assert a | b == {*range(450)}
    assert {*range(50, 450)} & a & b == set(), "each record has one owner"
    assert min(len(a), len(b)) > 50


def test_pinned_reads_the_first_quarter_of_the_keys(kitchen: Kitchen) -> None:
    kitchen.cook(PROGRAMS["pinned"])
    quarter = {n for n in range(50) if hash_key(b"key-%d" % n) <= LAST_OF_A_QUARTER}
    assert 0 < len(quarter) < 50
    assert {row["offset"] for row in kitchen.rows("lake/quarter-1")} == quarter


def test_stateful_counts_each_key(kitchen: Kitchen, kafka: Kafka) -> None:
    kitchen.cook(PROGRAMS["stateful"])
    kafka.produce(kitchen.topic, [Record(b"50", b"key-0")])
    kitchen.cook(PROGRAMS["stateful"])
    with closing(sqlite3.connect("counts.db")) as opened:
        assert dict(opened.execute("SELECT key, orders FROM counts WHERE orders > 1")) == {b"key-0": 2}
        assert opened.execute("SELECT count(*) FROM counts").fetchone() == (50,)


def test_backfill_ends_and_the_next_run_goes_on(kitchen: Kitchen, kafka: Kafka) -> None:
    for more in ([], [Record(b"50", b"key-0")]):
        kafka.produce(kitchen.topic, more)
        kitchen.start(PROGRAMS["backfill"])
    assert sorted(row["offset"] for row in kitchen.rows("lake/backfill")) == [*range(51)]


def test_join_pairs_orders_with_payments_of_the_same_key(kitchen: Kitchen, kafka: Kafka) -> None:
    payments = kafka.create_topic("payments")
    kafka.produce(payments, [Record(b"%d" % n, b"key-%d" % (n % 60)) for n in range(120)])
    kitchen.here = {"orders,payments": f"{kitchen.topic},{payments}"}
    kitchen.cook(PROGRAMS["join"])
    found = sorted((int(row["bought"]), int(row["paid"])) for row in kitchen.rows("lake/paid"))
    assert found == sorted((n, n + more) for n in range(50) for more in (0, 60))
