"""The command `scripts/soak`: two drivers for two hours, and each minute the size of everything that must not grow.

Three of twenty keys fail from the first minute on; the function succeeds again after the last minute. Meanwhile the
drivers restart in turns at every tenth look, one is killed at every sixtieth, and the topic grows twice.
"""

import argparse
import csv
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import redis

import processes
import servers
import temporary
from drivers.driver import Driver
from drivers.fleet import Feeding, Fleet
from quiet import quiet
from spark_coop_source import OnError, map_keys
from spark_coop_source.function.rows import KeyRecords
from topics import Kafka

_RESTART_EVERY, _KILL_EVERY = 10, 60  # looks
_PACE = "2 seconds"
_MIB = 1 << 20
_LAST_BATCHES = 20
_FLAT, _LONG = 1.3, 40
"""No memory may be larger by this factor in the last quarter than in the second one, in a run of so many looks."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """One look. Memory is PSS in MiB: what processes share counts once."""

    look: int
    jvm: float  # of the larger driver, as are the next three
    reader: float  # its largest Python process
    python: float  # all its Python processes
    batch_ms: float  # median time from the plan of a batch until Spark has completed it
    offset_bytes: int  # the largest of the last batches
    redis: float  # MiB
    redis_keys: int
    shm: float  # KiB of /dev/shm


def arguments() -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(prog="scripts/soak", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=120, metavar="N", help="how many looks (default 120)")
    parser.add_argument("--every", type=float, default=60, metavar="S", help="seconds between two looks (default 60)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the rows as CSV too")
    return parser.parse_args()


def failing(flag: str) -> Callable[..., Any]:
    """A function that fails on three of twenty keys while the file `flag` is there."""

    def work(key: bytes | None, records: KeyRecords) -> pa.RecordBatch:
        if key in (b"key-3", b"key-8", b"key-13") and Path(flag).exists():
            raise ValueError("no such account")
        return records.arrow.select(["key", "value", "offset", "partition"])

    return work


def main() -> int:
    """Run; 0 if every record arrived once the keys no longer fail, each key in order, and no memory has grown."""
    wanted = arguments()
    with quiet("kafka"), processes.ending_politely(), ExitStack() as stack:
        stack.enter_context(temporary.of_children())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="coop-kafka-soak-")))
        kafka, valkey = stack.enter_context(servers.kafka_and_valkey(folder))
        flag = folder / "fails"
        flag.touch()
        on_error = OnError(1_000, "1s", "30s", then="park")
        options = map_keys(
            failing(str(flag)), "key binary, value binary, offset long, partition int", on_error=on_error
        )
        fleet = Fleet(
            Kafka(kafka.address),
            valkey.address,
            f"soak-{uuid.uuid4().hex[:8]}",
            folder,
            feeding=Feeding(every_keyless=1_000_000),
            options=dict(options),
            pace=_PACE,
        )
        stack.callback(fleet.end)
        rows: list[Sizes] = []
        with fleet.producing():
            drivers = [fleet.join(name) for name in ("a", "b")]
            _soak(fleet, drivers, wanted, rows)
            flag.unlink()
        print("The keys do not fail any more.", flush=True)
        fleet.until_attended(lambda: fleet.everything_arrived, "every record is in a sink")
        outcome = fleet.outcome()
        print(f"{outcome}\n{_growth(rows)}")
        larger = grown(rows) if len(rows) >= _LONG else []
        for name in larger:
            print(f"{name} has grown")
        return 0 if outcome.good and not larger else 1


def _soak(fleet: Fleet, drivers: Sequence[Driver], wanted: argparse.Namespace, rows: list[Sizes]) -> None:
    names = [f.name for f in fields(Sizes)]
    print(" ".join(f"{name:>12}" for name in names), flush=True)
    began = time.monotonic()
    for look in range(1, wanted.rows + 1):
        _wait_until(began + wanted.every * look)
        rows.append(_sizes(look, fleet, drivers))
        values = [getattr(rows[-1], name) for name in names]
        print(" ".join(f"{value:>12,.0f}" for value in values), flush=True)
        if wanted.output is not None:
            with wanted.output.open("w", newline="") as file:
                csv.writer(file).writerows([names, *([getattr(r, n) for n in names] for r in rows)])
        if look in (wanted.rows // 3, 2 * wanted.rows // 3):
            fleet.grow(2 * fleet.partitions)
            print(f"the topic has {fleet.partitions} partitions", flush=True)
        driver = drivers[look // _RESTART_EVERY % len(drivers)]
        if look % _KILL_EVERY == 0:
            print(f"driver {driver.name} is killed", flush=True)
            driver.kill()
            driver.start()
        elif look % _RESTART_EVERY == 0:
            driver.ask_to_stop()
            fleet.until(driver.stopped, f"{driver.name} stops")
            driver.start()
        fleet.until_attended(lambda: fleet.working(*drivers), "both drivers work")


def _wait_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.monotonic()))


def _sizes(look: int, fleet: Fleet, drivers: Sequence[Driver]) -> Sizes:
    jvms, readers, pythons = zip(*map(_memory, drivers), strict=True)
    with redis.Redis.from_url(fleet.redis_url, decode_responses=True) as client:
        used, keys = client.info("memory")["used_memory"], client.dbsize()
    return Sizes(
        look,
        max(jvms),
        max(readers),
        max(pythons),
        statistics.median(ms for d in drivers for ms in _batches_ms(d)),
        max(f.stat().st_size for d in drivers for f in _last(d, "offsets")),
        used / _MIB,
        keys,
        sum(f.stat().st_blocks * 512 for f in Path("/dev/shm").rglob("*") if f.is_file()) / 1024,  # noqa: S108
    )


def _memory(driver: Driver) -> tuple[float, float, float]:
    """MiB of a driver's JVMs, of its largest Python process, and of all its Python processes."""
    of_jvm, of_python = [0.0], [0.0]
    first = psutil.Process(driver.running.pid)
    for process in (first, *first.children(recursive=True)):
        try:
            of_kind = of_jvm if process.name() == "java" else of_python
            of_kind.append(process.memory_full_info().pss / _MIB)
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
    return sum(of_jvm), max(of_python), sum(of_python)


def _last(driver: Driver, folder: str) -> list[Path]:
    found = (driver.folder / "checkpoint" / folder).glob("[0-9]*")
    return sorted(found, key=lambda path: int(path.name))[-_LAST_BATCHES:]


def _batches_ms(driver: Driver) -> list[float]:
    planned, completed = ({p.name: p.stat().st_mtime for p in _last(driver, f)} for f in ("offsets", "commits"))
    return [1000 * (completed[name] - planned[name]) for name in planned.keys() & completed.keys()]


def _quarters(rows: Sequence[Sizes], name: str) -> tuple[float, float]:
    """The medians of a size in the second and in the last quarter."""
    quarter = max(1, len(rows) // 4)
    second, last = (
        statistics.median(getattr(row, name) for row in part) for part in (rows[quarter : 2 * quarter], rows[-quarter:])
    )
    return second, last


def _growth(rows: Sequence[Sizes]) -> str:
    both = ((f.name, *_quarters(rows, f.name)) for f in fields(Sizes)[1:])
    told = ", ".join(f"{name} {before:,.0f} -> {after:,.0f}" for name, before, after in both)
    return f"medians of the second and the last quarter: {told}"


def grown(rows: Sequence[Sizes]) -> list[str]:
    """The memories that are larger in the last quarter than in the second one, by more than `_FLAT`."""
    found = ((name, *_quarters(rows, name)) for name in ("jvm", "reader", "python", "redis"))
    return [name for name, second, last in found if last > _FLAT * second]


if __name__ == "__main__":
    sys.exit(main())
