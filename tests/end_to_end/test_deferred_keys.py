"""Keys that wait at a failing record: parked until they are released, or tried again in later batches and lives."""

from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from coordinator.progress.failing import FailingRecord
from coordinator.redis.client import RedisClient
from coordinator.redis.operator import OperatorVerbs
from coordinator.redis.poison import RedisPoison
from coordinator.values.key_hash import hash_key
from spark_coop_source import OnError, map_keys
from spark_coop_source.function.rows import KeyRecords
from streams import Stream
from topics import Kafka, Record

SCHEMA = "key binary, value binary, offset long, partition int"
KEYS, COUNT = 60, 600
BAD = range(7, COUNT, 61)
"""Records of different keys."""


def records() -> list[Record]:
    return [Record(b"bad" if n in BAD else b"good", b"key-%d" % (n % KEYS)) for n in range(COUNT)]


def shop(folder: Path) -> Callable[..., Any]:
    """A function that raises for each bad record, until a file `mended` is there. Files count the attempts.

    Local, so that it travels by value.
    """

    def work(key: bytes | None, records: KeyRecords) -> pa.RecordBatch:
        for value, offset in zip(
            records.arrow.column("value").to_pylist(), records.arrow.column("offset").to_pylist(), strict=True
        ):
            if value == b"bad" and not (folder / "mended").exists():
                if len(records) == 1:
                    with (folder / str(offset)).open("a") as attempts:
                        attempts.write(".")
                raise ValueError(f"no customer at {offset}")
        return records.arrow.select(["key", "value", "offset", "partition"])

    return work


def attempts(folder: Path) -> dict[int, int]:
    return {int(file.name): len(file.read_text()) for file in folder.iterdir() if file.name.isdecimal()}


def each_key_in_order(stream: Stream) -> bool:
    rows = dict.fromkeys((row.key, row.offset) for row in stream.sink.received)  # first deliveries
    return all(a < b for key in {k for k, _ in rows} for a, b in pairwise(offset for k, offset in rows if k == key))


def with_poison(stream: Stream, ask: Callable[[RedisPoison], Any]) -> Any:
    with closing(RedisClient(stream.options["redisUrl"])) as client:
        return ask(OperatorVerbs.of_group(client, stream.options["group"]).poison)


def failing(stream: Stream) -> tuple[FailingRecord, ...]:
    found: tuple[FailingRecord, ...] = with_poison(stream, RedisPoison.failing)
    return found


def test_a_parked_key_waits_for_its_release_with_everything_behind_it(
    stream: Stream, kafka: Kafka, tmp_path: Path
) -> None:
    kafka.produce(stream.options["subscribe"], records())
    folder = tmp_path / "attempts"
    folder.mkdir()
    how = OnError(3, "20ms", "50ms", then="park")
    form = map_keys(shop(folder), SCHEMA, concurrency=8, on_error=how)
    stream.run(**form)
    waiting = {n for bad in BAD for n in range(bad, COUNT, KEYS)}
    assert stream.sink.offsets == [n for n in range(COUNT) if n not in waiting]
    parked = failing(stream)
    assert {(r.offset, r.key_hash) for r in parked} == {(n, hash_key(b"key-%d" % (n % KEYS))) for n in BAD}
    assert {(r.parked, r.attempts) for r in parked} == {(True, 3)}
    assert attempts(folder) == dict.fromkeys(BAD, 3)
    stream.run(**form)
    assert attempts(folder) == dict.fromkeys(BAD, 3), "another life leaves them alone"
    (folder / "mended").touch()
    with_poison(stream, lambda poison: poison.resume(parked, "mended"))
    stream.run(**form)
    assert stream.sink.offsets == [*range(COUNT)], "each record once"
    assert each_key_in_order(stream)
    assert failing(stream) == ()


def test_available_now_fails_if_parked_keys_alone_fill_a_partition(
    stream: Stream, kafka: Kafka, tmp_path: Path
) -> None:
    """Rule: deferred-keys-cap. A release lets the next run go on, and nothing is lost."""
    kafka.produce(stream.options["subscribe"], records())
    folder = tmp_path / "attempts"
    folder.mkdir()
    how = OnError(1, "20ms", then="park")
    form = map_keys(shop(folder), SCHEMA, concurrency=8, on_error=how)
    options = {**form, "maxDeferredKeys": "3", "slots": "1"}
    with pytest.raises(PySparkException, match=r"TOO_MANY_FAILING_KEYS.*coop-kafka release"):
        stream.run(**options)
    assert stream.sink.offsets != [*range(COUNT)]
    (folder / "mended").touch()
    with_poison(stream, lambda poison: poison.resume(failing(stream), "mended"))
    stream.run(**options)
    assert {*stream.sink.offsets} == {*range(COUNT)}
    assert each_key_in_order(stream)


@pytest.mark.long
def test_attempts_count_over_batches_and_lives(stream: Stream, kafka: Kafka, tmp_path: Path) -> None:
    kafka.produce(stream.options["subscribe"], records())
    folder = tmp_path / "attempts"
    folder.mkdir()
    how = OnError(4, "2s", "2s", then="skip")
    form = map_keys(shop(folder), SCHEMA, concurrency=8, on_error=how)
    options = {**form, "batchTimeBudget": "1s", "slots": "2"}
    with stream.running(lambda: len(failing(stream)) == len(BAD), "each bad key is deferred", **options):
        pass
    assert {r.parked for r in failing(stream)} == {False}
    stream.run(**options)
    assert {*stream.sink.offsets} == {*range(COUNT)} - {*BAD}, "each other record; a stop may repeat its batch"
    assert each_key_in_order(stream)
    assert all(made >= 4 for made in attempts(folder).values())
    assert sum(attempts(folder).values()) <= len(BAD) * 5, "a stop between a call and its seal may hide one"
    assert failing(stream) == ()
