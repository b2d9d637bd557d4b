"""The command `scripts/faults`: brings about thirteen faults, one after the other, and waits until each shows.

For each it prints what an operator runs, and the lines that show the fault. docs/troubleshooting.md explains them.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from kafka import KafkaAdminClient, TopicPartition

import fault_report
import processes
import servers
import set_clocks
import small_disks
import temporary
from drivers.fleet import Feeding, Fleet
from spark_coop_source import OnError, map_keys
from spark_coop_source.function.rows import KeyRecords
from topics import Kafka, Record

KEY = b"key-7"
"""The key on which the function is slow, hangs or fails."""

_SCHEMA = "key binary, value binary, offset long, partition int"
_PATIENCE_S, _POLL_S = 120.0, 1.0
_SOON_S = 10.0
"""From the start of a command until it has named the fault."""
_BACKLOG = 40_000


@dataclass(frozen=True, slots=True)
class Scene:
    """A group at work, with its servers."""

    fleet: Fleet
    redis: servers.Server
    brokers: servers.Brokers | None = None  # three of its own, for a fault of brokers

    @property
    def three(self) -> servers.Brokers:
        """The brokers of a fault of brokers."""
        if self.brokers is None:
            raise AssertionError("this fault needs brokers of its own")
        return self.brokers

    def shown(self, command: str) -> str:
        """What a command of `coop-kafka` prints, on both outputs. `log` is the log of the driver."""
        if command == "log":
            return self.fleet.drivers["one"].log.read_text(errors="replace")
        here = {"GROUP": self.fleet.group, "TOPIC": self.fleet.topic}
        words = [here.get(word, word) for word in shlex.split(command.removeprefix("coop-kafka "))]
        program = [sys.executable, "-m", "spark_coop_source.command_line", *words, "--redis", self.redis.address]
        done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=_PATIENCE_S)
        return done.stdout + done.stderr


def _nothing(scene: Scene) -> None:
    """The function does it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault: how it comes about, the command that shows it, and a line of its output (a regular expression)."""

    name: str
    command: str
    line: str
    function: str = ""  # slow, hangs or fails, on one key
    on_error: OnError | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    happens: Callable[[Scene], None] = _nothing
    of_brokers: bool = False  # it needs three of its own


def _kill(scene: Scene) -> None:
    scene.fleet.drivers["one"].kill()


def _stop_redis(scene: Scene) -> None:
    scene.redis.stop()


def _age(scene: Scene) -> None:
    """The driver is away while its records go.

    It is not killed before its first batch: if Spark was writing the first file of its checkpoint, it starts no query
    there again.
    """
    fleet, tp = scene.fleet, TopicPartition(scene.fleet.topic, 0)
    fleet.until(lambda: fleet.drivers["one"].finished > 0, "a first batch")
    fleet.drivers["one"].kill()
    fleet.kafka.produce(fleet.topic, [Record(b"0", KEY, 0)] * 10)
    with closing(KafkaAdminClient(bootstrap_servers=fleet.kafka.bootstrap)) as admin:
        admin.delete_records({tp: -1})
    fleet.start("one")


def _grow(scene: Scene) -> None:
    scene.fleet.kafka.add_partitions(scene.fleet.topic, 2)
    scene.fleet.kafka.produce(scene.fleet.topic, [Record(b"0", b"key-%d" % n, 1) for n in range(20)])


def _backlog(scene: Scene) -> None:
    scene.fleet.kafka.produce(scene.fleet.topic, (Record(b"0", b"key-%d" % (n % 20), 0) for n in range(_BACKLOG)))


def _freeze_only_copy(scene: Scene) -> None:
    scene.three.freeze(_only_copy(scene))


def _kill_only_copy(scene: Scene) -> None:
    scene.three.kill(_only_copy(scene))


def _only_copy(scene: Scene) -> int:
    """The broker that has the only copy of the log from now on: nobody else can lead."""
    tp = TopicPartition(scene.fleet.topic, 0)
    with closing(KafkaAdminClient(bootstrap_servers=scene.three.bootstrap)) as admin:
        (partition,) = admin.describe_topics([tp.topic])[0]["partitions"]
        only = int(partition["leader_id"])
        admin.alter_partition_reassignments({tp: [only]})
        while admin.list_partition_reassignments([tp]):
            time.sleep(_POLL_S)
    return only


def _kill_all(scene: Scene) -> None:
    for node, _ in enumerate(scene.three.processes, 1):
        scene.three.kill(node)


_WAITS = r"no leader answers for .*their records wait"
_AGAIN = OnError(1_000, "1s", "5s", then="park")
FAULTS = (
    Fault("stuck key", "coop-kafka stuck GROUP", r"deferred .*ValueError", "fails", _AGAIN),
    Fault("slow key", "coop-kafka top GROUP --once", r" ([0-9a-f]{16})-\1 .* 2\d\d(?:\.\d+)? ", "slow"),
    Fault("hung driver", "coop-kafka describe GROUP", r" hung ", "hangs", options={"longestBatch": "3000"}),
    Fault("dead driver", "coop-kafka describe GROUP", r" ended ", happens=_kill),
    Fault("Redis away", "coop-kafka describe GROUP", r"REDIS_UNAVAILABLE: ", happens=_stop_redis),
    Fault("frozen broker", "log", _WAITS, happens=_freeze_only_copy, of_brokers=True),
    Fault(
        "no leader",
        "log",
        r"for .*\((no leader;|\S+: \w+Error).*their records wait",
        happens=_kill_only_copy,
        of_brokers=True,
    ),
    Fault("Kafka away", "log", r"asked again for up to", happens=_kill_all, of_brokers=True),
    Fault("records expired", "log", r"DATA_LOSS: ", happens=_age),
    Fault(
        "too many failing keys",
        "coop-kafka events GROUP",
        r" failing .*maxDeferredKeys",
        "fails",
        _AGAIN,
        {"maxDeferredKeys": "1"},
    ),
    Fault("new partition waits", "coop-kafka describe GROUP", r"older partitions", "fails", _AGAIN, happens=_grow),
    Fault("lagging partition", "coop-kafka list", r" \d{5} ", "slow", happens=_backlog),
    Fault(
        "quarantined key", "coop-kafka stuck GROUP", r"parked .*ValueError", "fails", OnError(2, "100ms", then="park")
    ),
)


def _function(kind: str) -> Callable[..., Any]:
    """A function that does nothing but on one key: local, so that it travels by value."""

    def work(key: bytes | None, records: KeyRecords) -> pa.RecordBatch:
        if key == b"key-7":
            if kind == "fails":
                raise ValueError("no such account")
            time.sleep(3_600 if kind == "hangs" else 0.2 * len(records))
        return records.arrow.select(["key", "value", "offset", "partition"])

    return work


@contextmanager
def scene_of(fault: Fault, kafka: str, folder: Path) -> Iterator[Scene]:
    """A driver at work on a steady flow of 20 keys, with a Redis of its own; all of it ends with the block."""
    folder.mkdir()
    options = dict(fault.options)
    if fault.function:
        done = map_keys(_function(fault.function), _SCHEMA, on_error=fault.on_error)
        options |= done
    with ExitStack() as stack:
        redis = servers.start_valkey(folder, servers.free_ports(1)[0])
        stack.callback(redis.stop)
        brokers = servers.start_brokers(folder) if fault.of_brokers else None
        if brokers:
            stack.callback(brokers.stop)
            kafka = brokers.bootstrap
        group = fault.name.replace(" ", "-").lower()
        feeding = Feeding(every_keyless=1_000_000)
        fleet = Fleet(Kafka(kafka), redis.address, group, folder, feeding=feeding, options=options, pace="1 second")
        stack.callback(fleet.end)
        with ExitStack() as producing:
            producing.enter_context(fleet.producing())
            fleet.join("one")
            if brokers:
                producing.close()  # nobody could write while brokers are away
            yield Scene(fleet, redis, brokers)


@dataclass(frozen=True, slots=True)
class Named:
    """What shows a fault."""

    lines: str
    seconds: float  # of the command, from its start
    since: float  # seconds, from the fault on, or from the first work of a driver whose function does it

    def __str__(self) -> str:
        return f"in {self.seconds:.1f} s, {self.since:.0f} s after it began: {self.lines}"


def bring_about(fault: Fault, kafka: str, folder: Path) -> Named | str:
    """What shows the fault; or that it does not show in time, or showed before."""
    with scene_of(fault, kafka, folder) as scene:

        def shown() -> list[str]:
            return [line for line in scene.shown(fault.command).splitlines() if re.search(fault.line, line)]

        if fault.happens is not _nothing and (early := shown()):
            return f"It showed before it happened: {early[0]}"
        fault.happens(scene)
        happened = time.monotonic()
        while (began := time.monotonic()) < happened + _PATIENCE_S:
            if found := shown():
                now = time.monotonic()
                return Named("\n".join(found[:3]), now - began, now - happened)
            time.sleep(_POLL_S)
        print(scene.shown(fault.command), file=sys.stderr)
    return f"It does not show within {_PATIENCE_S:.0f} s."


def main() -> int:
    """Bring about the faults; 0 if a command named each within `_SOON_S`."""
    parser = argparse.ArgumentParser(prog="scripts/faults", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(f.name for f in FAULTS) + "; default all")
    parser.add_argument(
        "--report",
        action="store_true",
        help="instead: faults under load, with the verdict on each; a NAME is then a word of their names",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the report: order and victims (default 0)")
    parser.add_argument("--own-mounts", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.report and not given.own_mounts and (start := small_disks.with_own_mounts()):
        os.execv(start[0], [*start, sys.executable, *sys.argv, "--own-mounts"])
    names = given.names
    wanted = [f for f in FAULTS if not names or f.name in names]
    reported = fault_report.chosen(names)
    unknown = [*{*names} - {f.name for f in FAULTS}] if not given.report else names if not reported else []
    if unknown:
        parser.error(f"there is no fault {unknown[0]!r}")
    missed, slowest = 0, 0.0
    with (
        processes.ending_politely(),
        tempfile.TemporaryDirectory(prefix="coop-kafka-faults-") as folder,
        temporary.of_children(),  # also of drivers that are killed
        ExitStack() as stack,
    ):
        if given.report:
            clocks = set_clocks.environment() if fault_report.CLOCKS.keys() & {*reported} else {}
            here = fault_report.possible(reported, mounts=given.own_mounts, clocks=bool(clocks))
            return fault_report.report(given.seed, Path(folder), here, clocks) if here else 1
        kafka = servers.kafka(Path(folder))
        stack.callback(kafka.stop)
        for number, fault in enumerate(wanted):
            found = bring_about(fault, kafka.address, Path(folder, str(number)))
            seconds = found.seconds if isinstance(found, Named) else 0.0
            missed += not isinstance(found, Named) or seconds > _SOON_S
            slowest = max(slowest, seconds)
            print(f"{fault.name}\n    {fault.command}\n    {found}", flush=True)
    within = f"within {_SOON_S:.0f} s, the slowest in {slowest:.1f} s"
    print(f"{len(wanted) - missed} of {len(wanted)} show, each by one command {within}")
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main())
