"""The recipes of docs/cookbook.md, executed as they stand, but for those that are programs of docs/jobs."""

import json
import re
import sqlite3
import struct
import time
from collections.abc import Iterable
from contextlib import closing
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pytest

from broker_jars import ROOT
from documented import Kitchen, blocks, commands, program
from json_service import service
from streams import eventually
from topics import Kafka, Record

PAGE = "docs/cookbook.md"
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL))
SERVERS = blocks(PAGE, "python")[0]
SCHEMA = {"type": "record", "name": "Order", "fields": [{"name": "amount", "type": "double"}]}
CODE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
AVRO = "Decode Avro with a schema registry"
CHARGES = "A whole job with calls"
AGAIN = "Read again from a date"
TABLES = {
    "Upsert by the highest offset": ("orders.db", "SELECT count(*), max(offset) FROM orders", (50, 49)),
    "Tombstones": ("present.db", "SELECT count(*), max(value) FROM present", (50, b"9")),
}
"""By title: the database, a question, and the answer after 50 records of 50 keys."""


def recipe(title: str) -> str:
    """A recipe with the first lines of the page."""
    return SERVERS + "".join(CODE.findall(SECTIONS[title]))


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite's files lie in the working directory."""
    monkeypatch.chdir(tmp_path)


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


@pytest.mark.long
@pytest.mark.parametrize("title", TABLES)
def test_a_recipe_fills_its_table(kitchen: Kitchen, title: str) -> None:
    kitchen.cook(recipe(title))
    database, question, expected = TABLES[title]
    assert answer(database, question) == expected


@pytest.mark.long
def test_another_group_reads_again_from_a_date(kitchen: Kitchen) -> None:
    kitchen.here = {"1769817600000": "0"}
    kitchen.cook(recipe(AGAIN))
    assert len(kitchen.rows("lake/again")) == 50


@pytest.mark.long
def test_windows_are_written_once_the_watermark_has_passed(kitchen: Kitchen, kafka: Kafka) -> None:
    title = "Event time"
    kitchen.cook(recipe(title))
    later = int(time.time() * 1000) + 40 * 60_000  # Kafka refuses a record of more than an hour later
    kafka.produce(kitchen.topic, [Record(b"later", b"k", timestamp_ms=later)])
    kitchen.cook(recipe(title))
    kafka.produce(kitchen.topic, [Record(b"latest", b"k", timestamp_ms=later)])
    kitchen.cook(recipe(title))
    assert sum(row["count"] for row in kitchen.rows("lake/windows")) == 50


def in_section(title: str) -> list[str]:
    """The commands of a section."""
    return [each for each in commands(PAGE) if each in SECTIONS[title]]


def _succeeds(kitchen: Kitchen, command: str) -> bool:
    return kitchen.run(command)[0] == 0


@pytest.mark.long
def test_a_group_reads_again_from_a_date(kitchen: Kitchen) -> None:
    kitchen.cook(recipe("Upsert by the highest offset"))
    kitchen.here = {"2026-01-31T00:00:00.000": "1970-01-01T00:00:00.000"}
    for command in in_section(AGAIN):
        eventually(partial(_succeeds, kitchen, command), "the stopped query has left its group")
    Path("orders.db").unlink()
    kitchen.cook(recipe("Upsert by the highest offset"))
    assert answer("orders.db", "SELECT count(*) FROM orders") == (50,)


def test_the_whole_job_upserts_and_its_audit_finds_no_fault(kitchen: Kitchen, kafka: Kafka) -> None:
    dead = kafka.create_topic("dead")
    kitchen.here = {"orders-dead": dead}
    kafka.produce(kitchen.topic, [Record(b"no number", b"key-1"), Record(b"77", b"key-2")])
    kitchen.cook(recipe(CHARGES))
    question = "SELECT count(*), sum(offset), max(amount) FROM amounts"
    assert answer("amounts.db", question) == (50, sum(range(50)) - 2 + 51, 77.0)
    described, audited, redriven = in_section(CHARGES)
    assert kitchen.run(described)[0] == 0
    code, out, _ = kitchen.run(audited)
    assert code == 0, out
    assert re.match(r"52 records done.*: 0 lost, 0 repeated, 0 out of order\.", out)
    assert kitchen.run(redriven)[0] == 0


def framed(amount: float) -> bytes:
    """A value as Confluent's serializer writes it."""
    body = BytesIO()
    fastavro.schemaless_writer(body, SCHEMA, {"amount": amount})
    return struct.pack(">bI", 0, 7) + body.getvalue()


def registry(path: str, _body: bytes) -> tuple[int, dict[str, object]]:
    """A schema registry that knows one schema, as number 7."""
    if path == "/schemas/ids/7":
        return 200, {"schema": json.dumps(SCHEMA)}
    return 404, {"error_code": 40403, "message": "not found"}


@pytest.mark.long
def test_avro_of_a_schema_registry_is_decoded_in_the_read(kitchen: Kitchen, kafka: Kafka) -> None:
    kitchen.topic = kafka.create_topic("avro")
    kafka.produce(kitchen.topic, [Record(framed(n / 2) if n else None, key=f"key-{n}".encode()) for n in range(200)])
    with service(registry) as server:
        kitchen.here = {"http://localhost:8081": server.url}
        kitchen.cook(recipe(AVRO))
        found = {(bytes(row["key"]), row["amount"]) for row in kitchen.rows("lake/avro")}
        assert found == {(f"key-{n}".encode(), n / 2 if n else None) for n in range(200)}
        assert 1 <= len(server.asked) < 100, "each task asks once"


def test_every_recipe_runs_here_or_is_a_program() -> None:
    elsewhere = {title for title, text in SECTIONS.items() if program(*CODE.findall(text))}
    assert {*SECTIONS} == {*TABLES, AVRO, AGAIN, "Event time", CHARGES} | elsewhere
