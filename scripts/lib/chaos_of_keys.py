"""Drivers that are killed while their function fails on some records: `scripts/chaos --then park` or `dead_letter`.

Of 10,000 records, 20 always raise, 20 raise twice, and 5 hang beyond the timeout of a call. Every other record must be
in a sink, each key in order. A bad record must be a dead letter; or its key waits, and is released at the end.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from kafka import KafkaConsumer, TopicPartition

from coordinator.progress.failing import FailingRecord
from coordinator.redis.client import RedisClient
from coordinator.redis.operator import OperatorVerbs
from drivers.driver import Driver
from drivers.fleet import Feeding, Fleet
from spark_coop_source import OnError, map_keys
from spark_coop_source.function.rows import KeyRecords

FEEDING = Feeding(keys=997, every_keyless=1_000_000)
"""A prime number of keys: bad records, at equal distances, are of many keys."""
_DRIVERS = ("a", "b")
_RECORDS = 10_000
_TIMEOUT_S = 1
_SCHEMA = "key binary, value binary, offset long, partition int"

Wait = Callable[[Callable[[], bool], str], None]


def is_bad(number: int) -> bool:
    """Whether the function never succeeds on this record: it raises, or hangs."""
    return number % 500 == 37 or number % 2_000 == 250


def options(then: str, folder: Path, dead_letters: str) -> dict[str, str]:
    """The options of a driver whose function fails, and parks the key or writes a dead letter in the end."""
    topic = dead_letters if then == "dead_letter" else None
    how = OnError(4, "100ms", "1s", f"{_TIMEOUT_S}s", then, topic)
    return map_keys(_failing(folder), _SCHEMA, concurrency=64, on_error=how)


def _failing(folder: Path) -> Callable[..., Any]:
    """The function: local, so that it travels by value. Files count the first two attempts on each flaky record."""

    async def work(key: bytes | None, records: KeyRecords) -> pa.RecordBatch:
        mended = (folder / "mended").exists()
        for number in map(int, records.arrow.column("value").to_pylist()):
            if number % 2_000 == 250 and not mended:
                await asyncio.sleep(1_000 * _TIMEOUT_S)
            if number % 500 == 37 and not mended:
                raise ValueError(f"record {number} is bad")
            attempts = folder / f"flaky-{number}"
            failed = len(attempts.read_text()) if attempts.exists() else 0
            if number % 500 == 99 and failed < 2:
                attempts.write_text("." * (failed + 1))
                raise OSError(f"record {number} is flaky")
        return records.arrow.select(["key", "value", "offset", "partition"])

    return work


def kill_and_judge(
    fleet: Fleet, then: str, dead_letters: str, kills: int, random: Random, wait: Wait, log: Callable[[str], None]
) -> bool:
    """Kill a driver after the other at random moments; whether every promise was kept."""
    with fleet.producing():
        drivers = [fleet.join(name) for name in _DRIVERS]
        for number in range(kills):
            _kill(fleet, random.choice(drivers), random.uniform(0, 3), wait)
            log(f"then={then}, kill {number + 1}: {len(fleet.arrived):,} records in a sink")
        wait(lambda: len(fleet.sent[0]) >= _RECORDS, "all records are sent")
    sent = range(len(fleet.sent[0]))
    bad = {n for n in sent if is_bad(n)}
    late = _behind(bad, sent) if then == "park" else bad
    wait(lambda: {n for _, n in fleet.arrived} >= {*sent} - late, "every other record is in a sink")
    early = {n for _, n in fleet.arrived} & late
    log(f"{len(bad)} bad records; {len(early)} of the {len(late)} that must not arrive did")
    if then == "park":
        return not early and _release(fleet, {n % FEEDING.keys for n in bad}, wait, log)
    wait(lambda: _dead(fleet, dead_letters) >= bad, "each bad record is a dead letter")
    dead, outcome = _dead(fleet, dead_letters), fleet.outcome()
    log(f"{len(dead)} dead letters; {outcome}")
    (verdict,) = outcome.verdicts
    good = not (verdict.altered or verdict.out_of_order or outcome.unexplained)
    return good and not early and dead == bad and verdict.lost == len(bad)


def _kill(fleet: Fleet, driver: Driver, after_s: float, wait: Wait) -> None:
    wait(lambda: fleet.working(driver), f"{driver.name} works")
    time.sleep(after_s)
    driver.kill()
    driver.start()


def _behind(bad: set[int], sent: range) -> set[int]:
    """The first bad record of each key, and everything behind it."""
    return {n for n in sent if any(b <= n and (n - b) % FEEDING.keys == 0 for b in bad)}


def _release(fleet: Fleet, keys: set[int], wait: Wait, log: Callable[[str], None]) -> bool:
    """Mend the function and release the parked keys; whether everything came, each key in order."""
    wait(lambda: len(_parked(fleet)) == len(keys), "each bad key is parked")
    (fleet.folder / "mended").touch()
    parked = _parked(fleet)
    with _operator(fleet) as verbs:
        verbs.poison.resume(parked, "the function is mended")
    wait(lambda: fleet.everything_arrived, "every record is in a sink")
    outcome = fleet.outcome()
    log(f"{len(parked)} keys were parked and released; {outcome}")
    return outcome.good


def _parked(fleet: Fleet) -> tuple[FailingRecord, ...]:
    with _operator(fleet) as verbs:
        return tuple(r for r in verbs.poison.failing() if r.parked)


@contextmanager
def _operator(fleet: Fleet) -> Iterator[OperatorVerbs]:
    with closing(RedisClient(fleet.redis_url)) as client:
        yield OperatorVerbs.of_group(client, fleet.group)


def _dead(fleet: Fleet, topic: str) -> set[int]:
    """The offsets that dead letters name."""
    with closing(KafkaConsumer(bootstrap_servers=fleet.kafka.bootstrap, consumer_timeout_ms=2_000)) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek_to_beginning()
        return {int(dict(record.headers)["coop.offset"]) for record in consumer}
