"""Servers, Spark session and topics of one run; each starts at its first use.

Spark is set up as a user would on a machine of two cores, with both sources.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, chdir, contextmanager
from functools import cached_property
from pathlib import Path
from uuid import uuid4

import psutil
from pyspark.sql import SparkSession

import servers
from bench.loader import Load, produce
from broker_jars import CONNECTOR, ROOT
from spark_coop_source.servers.java import JarSet
from topics import Kafka

SLOTS = 2
_LIB = Path(__file__).resolve().parents[1]


class World:
    """The shared servers and session of all cases."""

    def __init__(self, folder: Path, stack: ExitStack, *, quick: bool) -> None:
        self.folder, self.quick = folder, quick
        self._stack = stack
        self._topics: dict[Load, str] = {}
        self._cores = SLOTS
        self._unix_sockets = True

    @property
    def times(self) -> int:
        """The number of repetitions of a comparison."""
        return 3 if self.quick else 5

    @cached_property
    def broker(self) -> servers.Server:
        """A Kafka broker."""
        return self._started(servers.kafka(self._made("kafka")))

    @cached_property
    def redis(self) -> servers.Server:
        """A Valkey."""
        return self._started(servers.valkey(self._made("valkey")))

    @cached_property
    def kafka(self) -> Kafka:
        """The broker, with helpers that create topics."""
        return Kafka(self.broker.address)

    @cached_property
    def spark(self) -> SparkSession:
        """A session of two slots, or of the requested number."""
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        os.environ["PYTHONPATH"] = str(_LIB)  # for the sources and functions of the cases
        log = f"-Dlog4j2.configurationFile={ROOT / 'conf' / 'log4j2.properties'} -Dcoop.log={self.folder / 'spark.log'}"
        builder = (
            SparkSession.builder.master(f"local[{self._cores}]")
            .appName("coop-kafka benchmarks")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.log.level", "ERROR")
            .config("spark.driver.memory", "2g")
            .config("spark.driver.extraJavaOptions", log)
            .config("spark.jars", ",".join(map(str, CONNECTOR.jars)))
            .config("spark.python.unix.domain.socket.enabled", str(self._unix_sockets).lower())
            .config("spark.python.authenticate.socketTimeout", "120s")  # of a worker on a busy machine
            .config("spark.sql.shuffle.partitions", str(SLOTS))
            .config("spark.sql.warehouse.dir", str(self.folder / "warehouse"))
        )
        with chdir(self.folder):  # Python workers import from it first, and must import the installed modules
            session = builder.getOrCreate()
        self._stack.callback(session.stop)
        return session

    @contextmanager
    def widened(self, cores: int) -> Iterator[None]:
        """Within the block, a session of this many slots, so that as many tasks run at once."""
        before = self._cores
        self.widen(cores)
        yield
        self.widen(before)

    def widen(self, cores: int) -> None:
        """From now on, a session of this many slots, for work that waits and needs no core."""
        self._end_session()
        self._cores = cores

    def talk(self, *, unix_sockets: bool) -> None:
        """From now on, a session whose Python workers use Unix sockets to the JVM, or TCP."""
        self._end_session()
        self._unix_sockets = unix_sockets

    def _end_session(self) -> None:
        if "spark" in self.__dict__:
            self.spark.stop()
            del self.spark

    def topic(self, load: Load) -> str:
        """A topic with the content `load`; loaded once."""
        if load not in self._topics:
            print(f"  loading {load.records:,} records of {load.size:,} bytes, {load.codec} ...", flush=True)
            limit = {"max.message.bytes": str(2 * load.size)} if load.size > 500_000 else {}
            self._topics[load] = self.kafka.create_topic("bench", load.partitions, limit)
            produce(self.broker.address, self._topics[load], load)
        return self._topics[load]

    def checkpoint(self) -> str:
        """The folder of a new query's checkpoint."""
        return str(self.folder / f"checkpoint-{uuid4().hex[:8]}")

    def fetch(self, wanted: JarSet) -> None:
        """Fetch the jars of a program that only one case needs."""
        if not wanted.present():
            print(f"  fetching {wanted.what} ...", flush=True)
            wanted.fetch(Path(os.environ["SPARK_HOME"]))

    def log_bytes(self, topic: str) -> int:
        """Bytes of a topic's log on the broker's disk."""
        return sum(path.stat().st_size for path in self.folder.glob(f"kafka/data/{topic}-*/*.log"))

    @cached_property
    def jvm(self) -> psutil.Process:
        """Spark's JVM, whose descendants are the Python workers and readers."""
        return psutil.Process(int(self.spark.sparkContext._gateway.proc.pid))  # type: ignore[union-attr]  # noqa: SLF001

    def cpu(self) -> float:
        """CPU seconds so far of Spark's JVM and of all its Python processes, ended ones included."""
        return _cpu([self.jvm, *self.jvm.children(recursive=True)])

    def python_cpu(self) -> float:
        """The same without the JVM."""
        return _cpu(self.jvm.children(recursive=True))

    def _made(self, name: str) -> Path:
        folder = self.folder / name
        folder.mkdir()
        return folder

    def _started(self, server: servers.Server) -> servers.Server:
        self._stack.callback(server.stop)
        return server


def _cpu(family: list[psutil.Process]) -> float:
    total = 0.0
    for each in family:
        try:
            total += sum(each.cpu_times()[:4])  # its own, and those of children that it has waited for
        except psutil.NoSuchProcess:
            continue
    return total
