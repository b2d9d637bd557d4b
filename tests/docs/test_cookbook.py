"""The recipes of docs/cookbook.md, executed as they stand; only names of servers, topics and folders are put in."""

import json
import re
import shlex
import sqlite3
import struct
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any

import fastavro
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from broker_jars import ROOT
from command_runs import Run
from documented import Place, blocks, commands
from streams import DEADLINE_S, eventually
from topics import Kafka, Record

PAGE = "docs/cookbook.md"
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL))
SERVERS = blocks(PAGE, "python")[0]
SCHEMA = {"type": "record", "name": "Order", "fields": [{"name": "amount", "type": "double"}]}
CODE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
WITH_A_SERVICE = {"Ask a service for many keys at once", "Decode Avro with a schema registry"}
CHARGES = "A whole job with calls"
PARQUET = {
    "Dead letters and redrive": "amounts",
    "Read again from a date": "again",
    "Backfill what is there, then stop": "backfill",
    "Two applications": "both-a",
}
TABLES = {
    "Upsert by the highest offset": ("orders.db", "SELECT count(*), max(offset) FROM orders", (50, 49)),
    "Tombstones": ("present.db", "SELECT count(*), max(value) FROM present", (50, b"9")),
    "Stateful counts": ("counts.db", "SELECT count(*), sum(orders) FROM counts", (50, 50)),
}
"""By title: the database, a question, and the answer after 50 records of 50 keys."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of a recipe; SQLite's files are there."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Kitchen:
    """Runs recipes against the servers of the tests."""

    def __init__(self, spark: SparkSession, place: Place, group: str) -> None:
        self._spark, self.place, self.group = spark, place, group
        self.here: dict[str, str] = {}  # more of the page's names

    def code(self, title: str) -> str:
        """A recipe with its first lines."""
        (code,) = CODE.findall(SECTIONS[title])
        text = re.sub(r'"(checkpoints|lake)/', rf'"{self.place.folder}/\1/', SERVERS + code)
        for there, ours in self.here.items():
            text = text.replace(there, ours)
        text = text.replace("orders-to-", f"{self.group}-").replace('subscribe="orders"', f'subscribe="{self.topic}"')
        return self.place.put_in(text).replace('"subscribe": "orders"', f'"subscribe": "{self.topic}"')

    @property
    def topic(self) -> str:
        """The topic of the recipe."""
        return self.place.topic

    def cook(self, title: str) -> dict[str, Any]:
        """Run a recipe until it has read everything; its names."""
        names: dict[str, Any] = {"spark": self._spark}
        exec(self.code(title), names)  # it is our own page
        for query in self._spark.streams.active:
            try:
                query.processAllAvailable()
            finally:
                query.stop()
                query.awaitTermination(DEADLINE_S)
        return names

    def rows(self, folder: str) -> list[Any]:
        """The rows of a folder of Parquet files."""
        return self._spark.read.parquet(str(self.place.folder / folder)).collect()


@pytest.fixture
def kitchen(spark: SparkSession, kafka: Kafka, place: Place, group: str) -> Kitchen:
    """Servers with a topic of 50 records, each with a key of its own."""
    place.topic = kafka.create_topic("orders")
    kafka.produce(place.topic, [Record(b"%d" % number, b"key-%d" % number) for number in range(50)])
    return Kitchen(spark, place, group)


def answer(database: str, question: str) -> tuple[Any, ...]:
    """The first row of an answer of SQLite."""
    with closing(sqlite3.connect(database)) as opened:
        return tuple(opened.execute(question).fetchone())


def test_each_recipe_has_a_checkpoint_and_at_most_25_lines() -> None:
    found = {title: CODE.findall(text) for title, text in SECTIONS.items()}
    assert {title for title, codes in found.items() if len(codes) != 1} == set()
    assert {title for title, (code,) in found.items() if '"checkpointLocation"' not in code} == set()
    assert {title for title, (code,) in found.items() if len(code.splitlines()) > 25} == {CHARGES}


class Rows:
    """What `upsert` asks of a DataFrame."""

    def __init__(self, *rows: tuple[Any, ...]) -> None:
        self._rows = rows

    def select(self, *columns: str) -> "Rows":
        assert columns == ("partition", "key", "offset", "value")
        return self

    def collect(self) -> Iterable[tuple[Any, ...]]:
        return self._rows


def function(title: str) -> dict[str, Any]:
    """The names of a recipe up to its query."""
    (code,) = CODE.findall(SECTIONS[title])
    names: dict[str, Any] = {}
    exec(code.partition("\norders = ")[0], names)  # it is our own page
    return names


def test_an_upsert_ends_with_the_highest_offset_of_each_key() -> None:
    upsert = function("Upsert by the highest offset")["upsert"]
    upsert(Rows((0, b"a", 1, b"one"), (0, b"a", 5, b"five"), (1, b"a", 2, b"other partition")), 0)
    upsert(Rows((0, b"a", 3, b"late"), (0, b"b", 4, b"b")), 1)
    upsert(Rows((0, b"a", 5, b"five")), 0)
    with closing(sqlite3.connect("orders.db")) as opened:
        found = opened.execute("SELECT partition, key, offset, value FROM orders ORDER BY partition, key").fetchall()
    assert found == [(0, b"a", 5, b"five"), (0, b"b", 4, b"b"), (1, b"a", 2, b"other partition")]


def test_a_late_record_does_not_bring_a_deleted_key_back() -> None:
    upsert = function("Tombstones")["upsert"]
    upsert(Rows((0, b"a", 1, b"one"), (0, b"b", 2, b"two")), 0)
    upsert(Rows((0, b"a", 7, None)), 1)
    upsert(Rows((0, b"a", 1, b"one")), 2)
    assert answer("present.db", "SELECT group_concat(key), count(*) FROM present") == ("b", 1)


@pytest.mark.parametrize("title", TABLES)
def test_a_recipe_fills_its_table(kitchen: Kitchen, title: str) -> None:
    kitchen.cook(title)
    database, question, expected = TABLES[title]
    assert answer(database, question) == expected


@pytest.mark.parametrize("title", PARQUET)
def test_a_recipe_fills_its_folder(kitchen: Kitchen, kafka: Kafka, monkeypatch: pytest.MonkeyPatch, title: str) -> None:
    monkeypatch.setenv("APP", "a")
    kitchen.here = {"1769817600000": "0", "orders-dead": kafka.create_topic("dead")}
    kitchen.cook(title)
    assert len(kitchen.rows(f"lake/{PARQUET[title]}")) == 50


def test_windows_are_written_once_the_watermark_has_passed(kitchen: Kitchen, kafka: Kafka) -> None:
    title = "Event time"
    kitchen.cook(title)
    later = int(time.time() * 1000) + 40 * 60_000  # Kafka refuses a record of more than an hour later
    kafka.produce(kitchen.topic, [Record(b"later", b"k", timestamp_ms=later)])
    kitchen.cook(title)
    kafka.produce(kitchen.topic, [Record(b"latest", b"k", timestamp_ms=later)])
    kitchen.cook(title)
    assert sum(row["count"] for row in kitchen.rows("lake/windows")) == 50


def here(text: str, names: Mapping[str, str]) -> list[str]:
    """The words of a command after `coop-kafka`, with the names of the tests."""
    for there, ours in names.items():
        text = text.replace(there, ours)
    return shlex.split(text)[1:]


def in_section(title: str) -> list[str]:
    """The commands of a section."""
    return [each for each in commands(PAGE) if each in SECTIONS[title]]


def test_dead_letters_go_back_once_the_function_is_mended(kitchen: Kitchen, kafka: Kafka, run: Run) -> None:
    dead, title = kafka.create_topic("dead"), "Dead letters and redrive"
    kitchen.here = {"orders-dead": dead}
    kafka.produce(kitchen.topic, [Record(b"no number", b"key-1")])
    kitchen.cook(title)
    assert len(kitchen.rows("lake/amounts")) == 50
    (command,) = in_section(title)
    names = {"orders-dead": dead, "orders-to-": f"{kitchen.group}-", "--topic orders": f"--topic {kitchen.topic}"}
    code, out, err = run(*here(command, names), *servers_of(kitchen))
    assert (code, "1 record" in out) == (0, True), err


def servers_of(kitchen: Kitchen) -> tuple[str, ...]:
    """The flags of a command."""
    options = kitchen.place.options
    return "--redis", options["redisUrl"], "--bootstrap-server", options["kafka.bootstrap.servers"]


def _succeeds(run: Run, words: tuple[str, ...]) -> bool:
    return run(*words)[0] == 0


def test_a_group_reads_again_from_a_date(kitchen: Kitchen, run: Run) -> None:
    kitchen.cook("Upsert by the highest offset")
    names = {"orders-to-": f"{kitchen.group}-", "2026-01-31T00:00:00.000": "1970-01-01T00:00:00.000"}
    for command in in_section("Read again from a date"):
        words = (*here(command, names), *servers_of(kitchen))
        eventually(partial(_succeeds, run, words), "the stopped query has left its group")
    Path("orders.db").unlink()
    kitchen.cook("Upsert by the highest offset")
    assert answer("orders.db", "SELECT count(*) FROM orders") == (50,)


def test_the_whole_job_upserts_and_its_audit_finds_no_fault(kitchen: Kitchen, kafka: Kafka, run: Run) -> None:
    dead = kafka.create_topic("dead")
    kitchen.here = {"orders-dead": dead}
    kafka.produce(kitchen.topic, [Record(b"no number", b"key-1"), Record(b"77", b"key-2")])
    kitchen.cook(CHARGES)
    question = "SELECT count(*), sum(offset), max(amount) FROM amounts"
    assert answer("amounts.db", question) == (50, sum(range(50)) - 2 + 51, 77.0)
    names = {"orders-dead": dead, "orders-to-": f"{kitchen.group}-", "--topic orders": f"--topic {kitchen.topic}"}
    described, audited, redriven = (here(each, names) for each in in_section(CHARGES))
    assert run(*described, *servers_of(kitchen)[:2])[0] == 0
    code, out, _ = run(*audited, *servers_of(kitchen))
    assert code == 0, out
    assert re.match(r"52 records done.*: 0 lost, 0 repeated, 0 out of order\.", out)
    assert run(*redriven, *servers_of(kitchen))[0] == 0


class Service(ThreadingHTTPServer):
    """A schema registry that knows one schema, as number 7; and a service that scores texts."""

    asked: list[str]


class _Handler(BaseHTTPRequestHandler):
    server: Service

    def do_GET(self) -> None:
        self.server.asked.append(self.path.partition("?")[0])
        known = self.server.asked[-1] == "/schemas/ids/7"
        body = {"schema": json.dumps(SCHEMA)} if known else {"error_code": 40403, "message": "not found"}
        self._answer(200 if known else 404, "application/vnd.schemaregistry.v1+json", body)

    def do_POST(self) -> None:
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(self.path)
        self._answer(200, "application/json", [float(text) / 2 for text in texts])

    def _answer(self, status: int, kind: str, body: object) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the standard library
        """Nothing."""


@contextmanager
def service() -> Iterator[Service]:
    """A running service."""
    with Service(("127.0.0.1", 0), _Handler) as server:
        server.asked = []
        threading.Thread(target=server.serve_forever).start()
        try:
            yield server
        finally:
            server.shutdown()


def framed(amount: float) -> bytes:
    """A value as Confluent's serializer writes it."""
    body = BytesIO()
    fastavro.schemaless_writer(body, SCHEMA, {"amount": amount})
    return struct.pack(">bI", 0, 7) + body.getvalue()


def test_avro_of_a_schema_registry_is_decoded_in_the_read(kitchen: Kitchen, kafka: Kafka) -> None:
    kitchen.place.topic = kafka.create_topic("avro")
    kafka.produce(kitchen.topic, [Record(framed(n / 2) if n else None, key=f"key-{n}".encode()) for n in range(200)])
    with service() as server:
        kitchen.here = {"http://localhost:8081": f"http://127.0.0.1:{server.server_port}"}
        kitchen.cook("Decode Avro with a schema registry")
        found = {(bytes(row["key"]), row["amount"]) for row in kitchen.rows("lake/avro")}
        assert found == {(f"key-{n}".encode(), n / 2 if n else None) for n in range(200)}
        assert 1 <= len(server.asked) < 100, "each task asks once"


CLIENT = """
import asyncio, json, urllib.request

class Answer:
    def __init__(self, body):
        self.json = lambda: json.loads(body)
    def raise_for_status(self):
        pass

class AsyncClient:
    async def __aenter__(self):
        return self
    async def __aexit__(self, *raised):
        pass
    async def post(self, url, json):
        return Answer(await asyncio.to_thread(asked, url, json))

def asked(url, texts):
    with urllib.request.urlopen(url, json.dumps(texts).encode(), timeout=30) as answer:
        return answer.read()
"""
"""As much of httpx as the recipe needs: the tests do not install it."""


def test_a_service_scores_each_record_of_a_key(kitchen: Kitchen, monkeypatch: pytest.MonkeyPatch) -> None:
    stub = ModuleType("httpx")
    exec(CLIENT, stub.__dict__)
    monkeypatch.setitem(sys.modules, "httpx", stub)
    cloudpickle.register_pickle_by_value(stub)  # type: ignore[no-untyped-call]
    try:
        with service() as server:
            kitchen.here = {"http://scores:8080": f"http://127.0.0.1:{server.server_port}"}
            kitchen.cook("Ask a service for many keys at once")
    finally:
        cloudpickle.unregister_pickle_by_value(stub)  # type: ignore[no-untyped-call]
    rows = kitchen.rows("lake/scores")
    assert sorted((row["offset"], row["score"]) for row in rows) == [(n, n / 2) for n in range(50)]


def test_every_recipe_runs_here() -> None:
    assert {*SECTIONS} == {*TABLES, *PARQUET, *WITH_A_SERVICE, "Event time", CHARGES}
