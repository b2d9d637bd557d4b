"""The command `scripts/cluster`: queries on a Spark cluster of two hosts, which are namespaces of this machine."""

import argparse
import json
import os
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import job_output
import processes
import servers
from broker_jars import ROOT
from cluster import hosts, spark
from cluster.hosts import BASE, Host
from cluster.spark import Cluster
from coordinator.redis.client import RedisClient
from coordinator.redis.operator import OperatorVerbs
from coordinator.tools.operations.draining import drain
from drivers.driver import Driver
from drivers.fleet import HAND_OVER_S, Fleet
from flights import flights
from job import FLIGHTS_JOB, SLOTS, Job, SparkSubmit
from topics import Kafka

_BATCHES = 6
_SESSION_MS = "45000"  # the default: a driver that ends politely is replaced long before
_CUT_S = 20.0
_LEFT_S = 60.0
_MOST_FETCHED = 1.1
"""Bytes that a host may fetch, beside those of the log."""

_JOB = ROOT / "scripts" / "lib" / "cluster" / "hosts_job.py"


def arguments() -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(
        prog="scripts/cluster",
        description="Two hosts of a standalone Spark cluster read one partition. A host is killed, its network is cut,"
        " drivers are killed, drained, and end by SIGTERM. At the end every record must be in a sink, each key in"
        " order. Needs root, Linux, and the command ip.",
    )
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    """Pack the environment, then go on in a network of our own; 0 if all went well."""
    folder = arguments().folder
    if folder is not None:
        return 0 if _show(folder) else 1
    if os.geteuid():
        sys.exit("scripts/cluster makes namespaces, which needs root: run it with sudo")
    with processes.ending_politely(), tempfile.TemporaryDirectory(prefix="coop-kafka-cluster-") as made:
        print("Packing an environment for --archives ...", flush=True)
        spark.pack(Path(made))
        return hosts.in_own_network([sys.executable, __file__, "--folder", made])


def _show(folder: Path) -> bool:
    with processes.ending_politely(), ExitStack() as stack:
        hosts.enter()
        kafka = servers.start_broker(folder, host=BASE)
        stack.callback(kafka.stop)
        (port,) = servers.free_ports(1)
        redis = servers.start_valkey(folder, port, more=["--protected-mode", "no"], host=BASE)
        stack.callback(redis.stop)
        hidden = [ROOT / ".venv", folder / "environment"]
        made = [Host(name, number, folder, hidden) for number, name in enumerate(("one", "two"), start=11)]
        for host in made:
            stack.callback(host.kill)
        cluster = Cluster(folder, made)
        cluster.start()
        scene = _Scene(folder, Kafka(kafka.address), redis.address, cluster)
        good = scene.read_once()
        return scene.disturb(stack) and good


class _Scene:
    def __init__(self, folder: Path, kafka: Kafka, redis_url: str, cluster: Cluster) -> None:
        self._folder, self._kafka, self._redis, self._cluster = folder, kafka, redis_url, cluster
        self._began = time.monotonic()

    def _log(self, text: str) -> None:
        print(f"{time.monotonic() - self._began:5.0f} s  {text}", flush=True)

    # -- a backlog -----------------------------------------------------------------------------------

    def read_once(self) -> bool:
        """Read a backlog in several batches; whether each host fetched it about once, and nothing is missing."""
        sent, topic = flights(), self._kafka.create_topic("flights")
        self._kafka.produce(topic, sent, compression="lz4")
        log = sum(f.stat().st_size for f in (self._folder / "data" / f"{topic}-0").glob("*.log"))
        folder, per_batch = self._driver("flights"), -(-len(sent) // _BATCHES)
        job = Job(self._kafka.bootstrap, topic, "flights", self._redis, folder, per_batch)
        received = self._bytes_received(job)
        batches = job_output.finished_batches(job.output)
        offsets = job_output.offsets(job.output)
        whole = offsets == list(range(len(sent)))
        self._log(f"{len(offsets):,} of {len(sent):,} records in {len(batches)} batches, each once: {whole}")
        ratios = {name: count / log for name, count in received.items()}
        shown = ", ".join(f"host {name} {ratio:.2f}" for name, ratio in ratios.items())
        self._log(f"bytes received from Kafka / bytes of the log: {shown}")
        return whole and max(ratios.values()) <= _MOST_FETCHED and self._forget_blocks()

    def _forget_blocks(self) -> bool:
        """Wait until no host has blocks in shared memory; whether it happened soon."""
        began, left = time.monotonic(), 1
        while left and time.monotonic() - began < _LEFT_S:
            left = sum(host.shared_memory_bytes for host in self._cluster.hosts)
            time.sleep(0.5)
        self._log(f"blocks left in shared memory {time.monotonic() - began:.0f} s after the query: {left:,} bytes")
        return not left

    def _bytes_received(self, job: Job) -> dict[str, int]:
        """Run a job to its end; bytes that each host received from Kafka."""
        received: dict[str, Counter[str]] = {host.name: Counter() for host in self._cluster.hosts}

        def look() -> None:
            for host in self._cluster.hosts:
                received[host.name] |= Counter(host.received_from(self._kafka.bootstrap))

        submit = SparkSubmit(FLIGHTS_JOB, job.words, job.folder, job.log, SLOTS, self._cluster.words(SLOTS // 2))
        job.finish(submit.start({"COOP_REDIS": self._redis}), look)
        return {name: sum(of_host.values()) for name, of_host in received.items()}

    def _driver(self, name: str) -> Path:
        """The folder of a driver, with the interpreter where executors have it."""
        folder = self._folder / name
        folder.mkdir(parents=True)
        (folder / "environment").symlink_to(self._folder / "environment")
        return folder

    # -- a flow ---------------------------------------------------------------------------------------

    def disturb(self, stack: ExitStack) -> bool:
        """Two applications share a flow while hosts and drivers fail; whether nothing is lost or out of order."""
        name = f"cluster-{uuid.uuid4().hex[:8]}"
        fleet = Fleet(self._kafka, self._redis, name, self._folder / name, pace="1 second", job=_JOB)
        fleet.cluster = self._cluster.words()
        fleet.options = {"sessionTimeout": _SESSION_MS}
        stack.callback(fleet.end)
        for driver in ("a", "b"):
            self._driver(f"{name}/{driver}")
        with fleet.producing():
            a, b = (fleet.join(driver) for driver in ("a", "b"))
            self._works(fleet, a, b)
            self._lose_hosts(fleet, a, b)
            self._log("driver a is killed")
            a.kill()
            fleet.until(lambda: fleet.shared(b), "b has all")
            a.start()
            self._works(fleet, a, b)
            self._replace(fleet, a)
            self._works(fleet, a, b)
            soon = self._terminate(fleet, b)
        fleet.until(lambda: fleet.everything_arrived, "every record is in a sink")
        fleet.end()
        self._log(str(fleet.outcome()))
        return fleet.outcome().good and soon

    def _lose_hosts(self, fleet: Fleet, a: Driver, b: Driver) -> None:
        one, two = self._cluster.hosts
        with self._disturbed("host two is killed", a, b):
            two.kill()
        self._works(fleet, a, b, only=one)
        self._cluster.start_worker(two)
        self._works(fleet, a, b)
        with self._disturbed(f"the network of host one is cut for {_CUT_S:.0f} s", a, b):
            one.cut(off=True)
            time.sleep(_CUT_S)
            one.cut(off=False)
        self._works(fleet, a, b)

    @contextmanager
    def _disturbed(self, what: str, *drivers: Driver) -> Iterator[None]:
        """The batches that run meanwhile may be repeated."""
        self._log(what)
        for driver in drivers:
            driver.disturbed.append(len(driver.lines))
        yield
        for driver in drivers:
            driver.disturbed.append(len(driver.lines))

    def _works(self, fleet: Fleet, *drivers: Driver, only: Host | None = None) -> None:
        """Wait until each driver has finished two more batches, and the wanted hosts have read some of them."""
        names = {host.name for host in self._cluster.hosts if only in (None, host)}
        before = {d.name: len(d.lines) for d in drivers}

        def later() -> list[str]:
            return [line for d in drivers for line in d.lines[before[d.name] :]]

        def happened() -> bool:
            return all(len(d.lines) >= before[d.name] + 2 for d in drivers) and set(_hosts(later())) >= names

        seconds = fleet.until(happened, f"{names} read")
        counts = _hosts(later())
        self._log(f"after {seconds:.0f} s: " + ", ".join(f"host {h} read {counts[h]:,}" for h in sorted(counts)))

    def _replace(self, fleet: Fleet, driver: Driver) -> None:
        """Drain a driver, end it by SIGTERM, and start it again."""
        held = fleet.held(driver)
        self._log(f"driver {driver.name} is drained, and gets SIGTERM")
        with closing(RedisClient(self._redis)) as client:
            drain(OperatorVerbs.of_group(client, fleet.group), [driver.member])
        self._log(f"another one delivers its keys after {fleet.delivered(held):.1f} s")
        driver.disturbed.append(len(driver.lines))
        processes.stop(driver.running)
        driver.start()

    def _terminate(self, fleet: Fleet, driver: Driver) -> bool:
        """End a driver by SIGTERM in a batch; whether another one owns its ranges soon, with a session far longer."""
        held = fleet.held(driver)
        fleet.until(lambda: driver.in_a_batch, "it is in a batch")
        self._log(f"driver {driver.name} gets SIGTERM in a batch")
        driver.disturbed.append(len(driver.lines))
        began_ms = time.time_ns() // 1_000_000
        driver.running.terminate()
        after_s = fleet.handed_over(driver, began_ms)
        self._log([event.why for event in fleet.events_of(driver) if event.kind == "leave"][-1])
        self._log(f"another one owns its ranges after {after_s:.1f} s: at most {HAND_OVER_S:.0f} s are allowed")
        self._log(f"another one delivers its keys after {fleet.delivered(held):.1f} s")
        return after_s <= HAND_OVER_S


def _hosts(lines: list[str]) -> Counter[str]:
    return Counter(d[-1] for line in lines for d in json.loads(line)["deliveries"])


if __name__ == "__main__":
    raise SystemExit(main())
