"""`scripts/faults --report`: every kind of fault that can be made here, under load, with the verdict on each.

Three drivers of one group, on three brokers and on two Valkeys with sentinels. For each fault records flow, the fault
happens and ends, and the report waits until every record is in a sink. One seed decides the order of the faults, and
who is hit.
"""

import shutil
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, cast

import psutil
import redis
from kafka import KafkaAdminClient, TopicPartition

import redis_sentinels
import servers
import set_clocks
from checkout import commit
from drivers.driver import Driver
from drivers.fleet import PATIENCE_S, SESSION_S, Fleet
from drivers.output import Outcome
from small_disks import copy, full, own_disk
from topics import Kafka

_PACE = "1 second"
_SETTLE_S = 4.0  # records that arrive before a fault, and after it
_LONG_S = SESSION_S + 5  # longer than a lease
_POLL_S = 0.2
_HEAD = (
    "| fault | records | lost or altered | out of order | repeated | without a reason | seconds until all had arrived |"
    f"\n|---|{'---:|' * 6}"
)


@dataclass(frozen=True, slots=True)
class Stage:
    """Everything that a fault may hit, and the dice."""

    fleet: Fleet
    brokers: servers.Brokers
    valkeys: redis_sentinels.Watched
    random: Random

    @property
    def driver(self) -> Driver:
        """One of the drivers."""
        return self.random.choice(list(self.fleet.drivers.values()))

    @property
    def node(self) -> int:
        """One of the brokers."""
        return self.random.randint(1, len(self.brokers.processes))

    def redis(self) -> "closing[redis.Redis]":
        """The master."""
        return closing(redis.Redis(port=self.valkeys.master))


@dataclass(frozen=True, slots=True)
class Row:
    """One fault: what arrived of the records that were sent around it."""

    name: str
    sent: int
    wrong: int
    out_of_order: int
    repeats: int
    unexplained: int
    seconds: float  # from the end of the fault until every record had arrived

    def __str__(self) -> str:
        figures = (self.sent, self.wrong, self.out_of_order, self.repeats, self.unexplained)
        return f"| {self.name} | {' | '.join(f'{n:,}' for n in figures)} | {self.seconds:.0f} |"


# -- drivers -------------------------------------------------------------------------------------


def _kill_driver(stage: Stage) -> None:
    driver = stage.driver
    driver.kill()
    driver.start()


def _kill_jvm(stage: Stage) -> None:
    driver = stage.driver
    driver.kill_jvm()
    driver.start()


def _kill_all_drivers(stage: Stage) -> None:
    for driver in stage.fleet.drivers.values():
        driver.kill()
    for driver in stage.fleet.drivers.values():
        driver.start()


def _freeze_driver(stage: Stage) -> None:
    driver = stage.driver
    driver.freeze()
    time.sleep(_LONG_S)
    driver.wake()


def _stop_driver(stage: Stage) -> None:
    driver = stage.driver
    driver.ask_to_stop()
    stage.fleet.until(driver.stopped, f"{driver.name} stops", PATIENCE_S)
    driver.start()


# -- Redis ---------------------------------------------------------------------------------------


def _fail_over(stage: Stage) -> None:
    stage.valkeys.kill_master()
    stage.valkeys.start_dead()


def _cut_off_master(stage: Stage) -> None:
    """It goes on when the copy is the master already, and does not know of that."""
    port = stage.valkeys.freeze_master()
    time.sleep(_SETTLE_S)
    stage.valkeys.thaw(port)


def _empty(stage: Stage) -> None:
    with stage.redis() as client:
        client.flushall()


def _roll_back(stage: Stage) -> None:
    stage.valkeys.roll_back(_SETTLE_S)


def _refusing(stage: Stage, setting: str, value: str) -> None:
    with stage.redis() as client:
        client.config_set(setting, value)
        time.sleep(_LONG_S)
        client.config_set(setting, "0")


def _fill(stage: Stage) -> None:
    _refusing(stage, "maxmemory", "1")


def _fill_disk(stage: Stage) -> None:
    """The master writes to a small file system, which is then full. It answers only errors, so its copy takes over."""
    small = stage.fleet.folder / "small"
    with own_disk(small):
        with stage.redis() as client:
            home = cast(dict[str, str], client.config_get("dir"))["dir"]
            _write_to(client, str(small))
            with full(small):
                refuses = partial(_persistence, client, "aof_last_write_status", "err")
                stage.fleet.until(refuses, "Redis cannot write to its disk")
                time.sleep(_LONG_S)
            _write_to(client, home)
            client.config_rewrite()  # sentinels had its settings written meanwhile
        stage.valkeys.wait_for_copy()


def _write_to(client: redis.Redis, folder: str) -> None:
    """Keep the log of writes in this folder from now on."""
    client.config_set("appendonly", "no")
    client.config_set("dir", folder)
    client.config_set("appendonly", "yes")
    while _persistence(client, "aof_rewrite_in_progress", 1) or _persistence(client, "aof_rewrite_scheduled", 1):
        time.sleep(_POLL_S)


def _persistence(client: redis.Redis, name: str, value: object) -> bool:
    found: dict[str, Any] = client.info("persistence")
    return bool(found[name] == value)


def _without_copies(stage: Stage) -> None:
    _refusing(stage, "min-replicas-to-write", "2")


# -- clocks ----------------------------------------------------------------------------------------
_BY_S, _NO_ROOM = 30, "No space left on device"


def _set_clock(seconds: int, stage: Stage) -> None:
    """The master's clock is wrong by so many seconds for a while, then right again."""
    port = stage.valkeys.master
    clock = stage.valkeys.folder(port) / set_clocks.CLOCK
    with closing(redis.Redis(port=port)) as client:

        def wrong_by(expected: int) -> bool:
            now, _ = client.time()
            return abs(now - time.time() - expected) < _SETTLE_S

        for by in (seconds, 0):
            clock.write_text(f"{by:+}s")
            stage.fleet.until(partial(wrong_by, by), f"the clock of Redis is wrong by {by} s")
            time.sleep(_LONG_S if by else _SETTLE_S)
            if stage.valkeys.master != port or not wrong_by(by):
                raise RuntimeError(f"the clock of the master was not wrong by {by} s all the time")
    clock.unlink()


# -- Kafka ---------------------------------------------------------------------------------------


def _kill_broker(stage: Stage) -> None:
    node = stage.node
    stage.brokers.kill(node)
    time.sleep(_LONG_S)
    stage.brokers.start(node)
    stage.brokers.wait()


def _freeze_broker(stage: Stage) -> None:
    node = stage.node
    stage.brokers.freeze(node)
    time.sleep(_LONG_S)
    stage.brokers.thaw(node)


def _fill_disk_of_broker(stage: Stage) -> None:
    """A broker that cannot write to its disk ends by itself, and starts again once there is room."""
    node = stage.node
    data = stage.brokers.properties[node - 1].with_name("data")
    kept = data.with_name("kept")
    stage.brokers.kill(node)
    data.rename(kept)
    with own_disk(data):
        copy(kept, data)
        stage.brokers.start(node)
        stage.brokers.wait()
        with full(data):
            ended = stage.brokers.processes[node - 1].poll
            stage.fleet.until(lambda: ended() is not None, f"broker {node} ends, as it cannot write")
            if _NO_ROOM not in data.with_name("broker.log").read_text(errors="replace"):
                raise RuntimeError(f"broker {node} has ended for another reason than a full disk")
            time.sleep(_LONG_S)
        stage.brokers.start(node)
        stage.brokers.wait()
        stage.brokers.kill(node)
        shutil.rmtree(kept)
        kept.mkdir()
        copy(data, kept)
    kept.rename(data)
    stage.brokers.start(node)
    stage.brokers.wait()


def _kill_all_brokers(stage: Stage) -> None:
    nodes = range(1, len(stage.brokers.processes) + 1)
    for node in nodes:
        stage.brokers.kill(node)
    time.sleep(_SETTLE_S)
    for node in nodes:
        stage.brokers.start(node)
    stage.brokers.wait()


def _without_leader(stage: Stage) -> None:
    """One partition has one copy, whose broker is killed; then it has three again."""
    tp, kafka = TopicPartition(stage.fleet.topic, 0), stage.fleet.kafka
    kafka.configure(tp.topic, {"min.insync.replicas": "1"})  # else Kafka elects no leader by itself
    with closing(KafkaAdminClient(bootstrap_servers=stage.brokers.bootstrap)) as admin:
        (described, *_) = admin.describe_topics([tp.topic])[0]["partitions"]
        only = int(described["leader_id"])
        _reassign(admin, tp, [only])
    stage.brokers.kill(only)
    time.sleep(_LONG_S)
    stage.brokers.start(only)
    stage.brokers.wait()
    with closing(KafkaAdminClient(bootstrap_servers=stage.brokers.bootstrap)) as admin:
        _reassign(admin, tp, [only, *({1, 2, 3} - {only})])
    kafka.configure(tp.topic, {"min.insync.replicas": "2"})


def _reassign(admin: Any, tp: TopicPartition, nodes: list[int]) -> None:
    admin.alter_partition_reassignments({tp: nodes})
    while admin.list_partition_reassignments([tp]):
        time.sleep(_POLL_S)


def _grow(stage: Stage) -> None:
    stage.fleet.grow(2 * stage.fleet.partitions)


Happens = Callable[[Stage], None]
CLOCKS: dict[str, Happens] = {
    f"the clock of Redis is {_BY_S} s {way} for {_LONG_S:.0f} s": partial(_set_clock, by)
    for way, by in (("ahead", _BY_S), ("behind", -_BY_S))
}
FAULTS: dict[str, Happens] = {
    "a driver and all its processes are killed": _kill_driver,
    "the JVM of a driver is killed": _kill_jvm,
    "all drivers are killed": _kill_all_drivers,
    f"a driver is frozen for {_LONG_S:.0f} s": _freeze_driver,
    "a driver is stopped and started": _stop_driver,
    "the master of Redis is killed": _fail_over,
    "the master of Redis is frozen until its copy is the master": _cut_off_master,
    "Redis is emptied": _empty,
    f"Redis goes back by {_SETTLE_S:.0f} s": _roll_back,
    f"Redis is full for {_LONG_S:.0f} s": _fill,
    f"the disk of Redis is full for {_LONG_S:.0f} s": _fill_disk,
    f"Redis has too few copies to write for {_LONG_S:.0f} s": _without_copies,
    f"a broker is killed for {_LONG_S:.0f} s": _kill_broker,
    f"the disk of a broker is full for {_LONG_S:.0f} s": _fill_disk_of_broker,
    f"a broker is frozen for {_LONG_S:.0f} s": _freeze_broker,
    f"all brokers are killed for {_SETTLE_S:.0f} s": _kill_all_brokers,
    f"a partition has no leader for {_LONG_S:.0f} s": _without_leader,
    "partitions are added": _grow,
    **CLOCKS,
}
_NOBODY_WRITES = (_kill_all_brokers, _without_leader)
"""Faults during which no record is sent: the producer would not know what arrived."""
_NEED_MOUNTS = (_fill_disk, _fill_disk_of_broker)


def chosen(words: Sequence[str]) -> list[str]:
    """The names of faults that have one of these words; all without words."""
    return [name for name in FAULTS if not words or any(word in name for word in words)]


def possible(names: Sequence[str], *, mounts: bool, clocks: bool) -> list[str]:
    """Those that can be brought about here: with `mounts` of its own, and `clocks` to set. It names the others."""
    needs = {} if mounts else {name: "Linux, root and unshare" for name in FAULTS if FAULTS[name] in _NEED_MOUNTS}
    needs |= {} if clocks else dict.fromkeys(CLOCKS, f"Linux on x86-64, and {set_clocks.FAKETIME}")
    for name in names:
        if name in needs:
            print(f"not tried, as it needs {needs[name]}: {name}", file=sys.stderr)
    return [name for name in names if name not in needs]


def report(seed: int, folder: Path, names: Sequence[str], clocks: Mapping[str, str]) -> int:
    """Print the report of these faults in Markdown, each row as soon as it is known; 0 if no fault did harm.

    `clocks` is the environment of Redis.
    """
    random = Random(seed)  # noqa: S311 - it must replay
    order = list(FAULTS)
    random.shuffle(order)
    print(f"{datetime.now(UTC):%Y-%m-%d}, {commit()}, {psutil.cpu_count()} cores, seed {seed}\n\n{_HEAD}", flush=True)
    harm = False
    with _stage(folder, random, clocks) as stage:
        outcome = stage.fleet.outcome()
        for name in (each for each in order if each in names):
            row, outcome = _row(name, FAULTS[name], stage, outcome)
            harm |= bool(row.wrong or row.out_of_order or row.unexplained)
            print(row, flush=True)
        stage.fleet.end()
        total = stage.fleet.outcome()
    print(f"\n{len(names)} of {len(FAULTS)} faults; {total}")
    return 0 if total.good and not harm else 1


@contextmanager
def _stage(folder: Path, random: Random, clocks: Mapping[str, str]) -> Iterator[Stage]:
    with ExitStack() as stack:
        stack.callback(set_clocks.forget)
        brokers = servers.start_brokers(folder)
        stack.callback(brokers.stop)
        (folder / "valkeys").mkdir()
        valkeys = stack.enter_context(redis_sentinels.watched(folder / "valkeys", clocks))
        kafka = Kafka(brokers.bootstrap)
        fleet = Fleet(kafka, valkeys.url, f"faults-{uuid.uuid4().hex[:8]}", folder, partitions=2, pace=_PACE)
        stack.callback(fleet.end)
        for name in ("a", "b", "c"):
            fleet.join(name)
        yield Stage(fleet, brokers, valkeys, random)


def _row(name: str, happens: Happens, stage: Stage, before: Outcome) -> tuple[Row, Outcome]:
    """What arrived since `before`, and all of it."""
    fleet = stage.fleet
    if happens in _NOBODY_WRITES:
        with fleet.producing():
            time.sleep(_SETTLE_S)
        happens(stage)
    else:
        with fleet.producing():
            time.sleep(_SETTLE_S)
            happens(stage)
            time.sleep(_SETTLE_S)
    what = f"every record is in a sink after: {name}"
    seconds = fleet.until_attended(lambda: fleet.everything_arrived, what)
    fleet.until_attended(lambda: fleet.working(*fleet.drivers.values()), "all drivers work")
    after = fleet.outcome()

    def more(count: Callable[[Any], int]) -> int:
        return sum(map(count, after.verdicts)) - sum(map(count, before.verdicts))

    row = Row(
        name,
        more(lambda v: v.sent),
        more(lambda v: v.lost + v.altered),
        more(lambda v: v.out_of_order),
        more(lambda v: v.repeats),
        len(after.unexplained) - len(before.unexplained),
        seconds,
    )
    return row, after
