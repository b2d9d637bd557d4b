"""One Kafka broker, one Valkey and one Spark session for each pytest process that needs them; unit tests need none.

`COOP_KAFKA` and `COOP_REDIS` name servers to use instead of our own; names of topics and groups are unique.
"""

import contextlib
import logging
import os
import signal
import sys
import uuid
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from hypothesis import settings
from playwright.sync_api import Browser
from pyspark.sql import SparkSession
from xdist.scheduler import LoadGroupScheduling, LoadScopeScheduling

import processes
import redis_servers
import servers
import temporary
from broker_jars import CONNECTOR, ROOT
from command_runs import Run
from coordinator.kafka import connection, writable
from coordinator.kafka.log import KafkaLog
from coordinator.values.subscription import TopicPartition
from documented import Kitchen, Place
from drivers.fleet import Fleet
from group_services import SHORT_MS, Group
from guarded_broker import GuardedBroker, guarded_broker
from kafka_logs import kafka_log
from kept_clients import KeptClients
from log_lines import OURS
from own_valkey import OwnValkey
from purgatory import Purgatory
from reader_calls import Calls, calls_of
from secure_listener import SecureListener
from sites import chromium
from spark_coop_source.cache.folder import SHARED_MEMORY, opened, path
from spark_coop_source.dead_letters import producers
from spark_coop_source.driver import reader_process
from spark_coop_source.fetch import consumers
from store_world import StoreServer, World
from streams import Stream, keyed
from three_brokers import ThreeBrokers
from topics import Kafka, Record

LONGEST = (
    "test_drivers",
    "test_demo",
    "test_simulation",
    "test_specs",
    "test_traces",
    "test_decoding_memory",
    "test_shared_read",
)
"""Long files that come late in the alphabet, or, as a single test, could come last."""

SPARK_PROCESSES = 2
"""So many pytest processes start Spark: it waits only 10 s for its Python to start, also on a busy machine."""

STARTS_SPARK = {"spark", "fleet"}
"""Fixtures whose tests start a Spark session, or drivers."""

SERVERS = {
    "kafka_server",
    "guarded",
    "three_brokers",
    "redis_url",
    "valkey",
    "store_server",
    "spark",
    *redis_servers.KINDS,
}
"""Fixtures that start a server; a test that uses one has the mark `server`, in whatever way it comes to it."""

LONG = {"fleet", "guarded", "three_brokers", *redis_servers.OTHER_KINDS}
"""Fixtures whose tests have the mark `long`: drivers by spark-submit, other kinds of Kafka and Redis."""
LONG_S = 900
"""After so long a test with this mark is ended: later than any one wait in it, whose error names what it waited for."""

# How long an example takes is this machine's matter. `scripts/test --long` takes the profile `many`.
settings.register_profile("few", deadline=None, max_examples=25)
settings.register_profile("many", deadline=None, max_examples=100)
settings.load_profile("few")

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # in the background of a script; each driver would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ["COOP_TEST_PYTHON"] = sys.executable
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = str(ROOT / "tests" / "support" / "spark_python")
# Every JVM here lives for minutes at most. With one compiler and one collector thread it needs far less CPU time.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


@pytest.fixture(scope="session", autouse=True)
def _end_politely(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Stop servers and Spark also when the run is ended by SIGTERM; leave no temporary files of theirs."""
    with processes.ending_politely(), temporary.of_children(tmp_path_factory.getbasetemp()):
        yield


def pytest_sessionfinish(session: pytest.Session) -> None:
    """The last process removes what killed drivers left in shared memory; files that a living process locks stay."""
    if not hasattr(session.config, "workerinput"):
        with suppress(OSError), opened(SHARED_MEMORY) as ours:
            ours.sweep(kept_s=0)
            path(SHARED_MEMORY).rmdir()


@pytest.fixture(scope="module", autouse=True)
def _no_clients_left() -> Iterator[None]:
    """Else one whose broker has gone would look for it many times a second, in a thread, until the run ends."""
    yield
    _close_idle()


@pytest.fixture(autouse=True)
def _same_loggers() -> Iterator[None]:
    """A test that leaves a logger at another level fails itself; else a later one would wait for a line in vain."""
    loggers = [logging.getLogger(name) for name in ("", *OURS, "kafka")]
    before = [each.level for each in loggers]
    yield
    after = [each.level for each in loggers]
    for each, level in zip(loggers, before, strict=True):
        each.setLevel(level)
    assert (after, logging.root.manager.disable) == (before, 0)


def _close_idle() -> None:
    consumers.close_idle()
    producers.close_idle()


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `server.pem` (key and certificate of 127.0.0.1) and `authority.pem`, which signed it."""
    folder = tmp_path_factory.mktemp("certificates")
    authority = trustme.CA()
    server = authority.issue_cert(servers.HOST, "localhost")
    key = load_pem_private_key(server.private_key_pem.bytes(), password=None)
    pkcs8 = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())  # the only form that Kafka reads
    (folder / "server.pem").write_bytes(pkcs8 + b"".join(blob.bytes() for blob in server.cert_chain_pems))
    authority.cert_pem.write_to_path(folder / "authority.pem")
    return folder


@pytest.fixture(scope="session")
def kafka_server(certificates: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Server]:
    """The broker as a process; tests want `kafka` or `secure_listener`."""
    secure = servers.Secure(certificates / "server.pem", "alice", "wonder-land=1")
    server = servers.kafka(tmp_path_factory.mktemp("kafka"), secure=secure)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def kafka(kafka_server: servers.Server) -> Iterator[Kafka]:
    """The broker, with helpers that create topics and write records."""
    with closing(KeptClients(kafka_server.address)) as made:
        yield made


@pytest.fixture
def log(kafka: Kafka) -> Iterator[KafkaLog]:
    """The broker as a member's driver sees it."""
    with closing(kafka_log(kafka.bootstrap)) as made:
        yield made


@pytest.fixture(scope="session")
def secure_listener(kafka_server: servers.Server, certificates: Path) -> SecureListener:
    """The same broker where it asks for TLS and a password."""
    if kafka_server.secure_address is None:
        pytest.skip("COOP_KAFKA names a broker of yours: this test needs our own, which has a SASL_SSL listener")
    return SecureListener(kafka_server.secure_address, certificates / "authority.pem", "alice", "wonder-land=1")


@pytest.fixture(scope="module")
def guarded(certificates: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedBroker]:
    """Another broker, with access rights, for the tests of one file."""
    with guarded_broker(tmp_path_factory.mktemp("guarded"), certificates) as broker:
        yield broker


@pytest.fixture(scope="module")
def three_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreeBrokers]:
    """A cluster of three brokers, for the tests of one file, which kill them."""
    brokers = servers.start_brokers(tmp_path_factory.mktemp("brokers"))
    yield ThreeBrokers(brokers)
    brokers.stop()


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Redis for all tests; use `group` for a unique name."""
    server = servers.valkey(tmp_path_factory.mktemp("valkey"))
    yield server.address
    server.stop()


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[OwnValkey]:
    """A Valkey for this test alone: the test may stop it, or sees its groups only."""
    server = OwnValkey(tmp_path)
    yield server
    server.stop()


@pytest.fixture
def group() -> str:
    """The name of a group that does not exist yet."""
    return f"group-{uuid.uuid4().hex[:12]}"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium for the tests of one file, which skip where there is none."""
    with chromium() as started:
        yield started


@pytest.fixture
def place(kafka: Kafka, redis_url: str, group: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A topic and a folder in which code and commands of the docs run."""
    made = Place(kafka, redis_url, group, tmp_path)
    for name, address in made.addresses.items():
        monkeypatch.setenv(name, address)
    return made


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A Spark session with four slots; `coop-kafka` is registered by itself, from the installed wheel.

    `kafka`, Spark's own source, is there too.
    """
    folder = tmp_path_factory.mktemp("spark")
    java = f"-Dlog4j2.configurationFile={ROOT / 'conf' / 'log4j2.properties'} -Dcoop.log={folder / 'spark.log'}"
    builder = (
        SparkSession.builder.master("local[4]")
        .appName("coop-kafka tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.extraJavaOptions", java)
        .config("spark.jars", ",".join(map(str, CONNECTOR.jars)))
        .config("spark.python.unix.domain.socket.enabled", "true")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
    )
    with contextlib.chdir(folder):  # where Python workers look for modules first: they must find the installed ones
        session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def kitchen(
    spark: SparkSession,
    kafka: Kafka,
    redis_url: str,
    run: Run,
    group: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Kitchen]:
    """A topic of 50 records, each with a key of its own, for jobs of the docs."""
    monkeypatch.setenv("COOP_KAFKA", kafka.bootstrap)  # `run` has removed it
    monkeypatch.setenv("COOP_REDIS", redis_url)
    made = Kitchen(spark, kafka, run, group, tmp_path)
    kafka.produce(made.topic, [Record(b"%d" % number, b"key-%d" % number) for number in range(50)])
    yield made
    made.stop()


@pytest.fixture
def stream(spark: SparkSession, kafka: Kafka, redis_url: str, group: str, tmp_path: Path) -> Stream:
    """A stream of a new topic of one partition, for a new group."""
    options = {
        "kafka.bootstrap.servers": kafka.bootstrap,
        "subscribe": kafka.create_topic("orders"),
        "startingOffsets": "earliest",
        "group": group,
        "redisUrl": redis_url,
        "slots": "4",
    }
    return Stream(spark, options, tmp_path / "checkpoint")


@pytest.fixture(scope="session")
def cluster_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster of two nodes."""
    with redis_servers.valkey_cluster(tmp_path_factory.mktemp("cluster")) as url:
        yield url


@pytest.fixture(scope="session")
def tls_url(tmp_path_factory: pytest.TempPathFactory, certificates: Path) -> Iterator[str]:
    """The host's own Redis, by TLS."""
    if not servers.REDIS_SERVER:
        pytest.skip(servers.NO_REDIS_SERVER)
    with redis_servers.redis_by_tls(tmp_path_factory.mktemp("tls"), certificates) as url:
        yield url


@pytest.fixture(scope="session")
def old_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The oldest Redis that we work with."""
    if not servers.REDIS_6:
        pytest.skip(servers.NO_REDIS_6)
    with redis_servers.redis_6(tmp_path_factory.mktemp("redis-6")) as url:
        yield url


@pytest.fixture(scope="session")
def store_server(request: pytest.FixtureRequest) -> Iterator[StoreServer]:
    """The server that holds the groups of `world`."""
    with closing(StoreServer(request.getfixturevalue(getattr(request, "param", "redis_url")))) as server:
        yield server


@pytest.fixture
def world(store_server: StoreServer) -> World:
    """A group's store with a clock that stands still until it is moved."""
    return World(store_server)


@pytest.fixture
def founded(world: World) -> World:
    """The same, of a group that has positions."""
    world.found()
    return world


@pytest.fixture
def purgatory(world: World) -> Iterator[Purgatory]:
    """Workers of a group's one member."""
    with closing(Purgatory(world)) as made:
        yield made


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what -m excludes
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Add the marks that tests have by themselves; begin with what takes longest, so that no process waits long."""
    of_spark = sorted({i.path for i in items if STARTS_SPARK.intersection(getattr(i, "fixturenames", ()))})
    for item in items:
        if SERVERS.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("server")
        if LONG.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("long")
        if item.get_closest_marker("long") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(LONG_S))
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker("examples")
        if item.path in of_spark:
            item.add_marker(pytest.mark.xdist_group(f"spark-{of_spark.index(item.path) % SPARK_PROCESSES}"))
    items.sort(
        key=lambda item: (item.path.stem != LONGEST[0], item.path not in of_spark, item.path.stem not in LONGEST)
    )


def pytest_collection_finish(session: pytest.Session) -> None:
    """Each group must reach the scheduler: else every process would start a Spark session."""
    grouped = [i for i in session.items if i.get_closest_marker("xdist_group")]
    if getattr(session.config.option, "loadgroup", False) and not all("@" in item.nodeid for item in grouped):
        raise pytest.UsageError("this pytest loses the groups of pytest-xdist; setup.cfg says which does not")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """With `--dist loadgroup`, a file without a group stays in one process too."""
    return FilesAndGroups(config, log) if config.getoption("dist") == "loadgroup" else None


class FilesAndGroups(LoadGroupScheduling):  # type: ignore[misc]
    """Assigns whole files, or all files of one group, to a process."""

    def _split_scope(self, nodeid: str) -> str:
        group = super()._split_scope(nodeid)
        return nodeid.partition("::")[0] if group == nodeid else group


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The store's tests run on each kind of server: those of whole modules, and those that are marked."""
    marked = metafunc.definition.get_closest_marker
    of_module = getattr(metafunc.module, "ON_EACH_SERVER", False) and not marked("one_server")
    if (of_module or marked("each_server")) and "store_server" in metafunc.fixturenames:
        metafunc.parametrize("store_server", redis_servers.PARAMS, indirect=True, scope="session")


@pytest.fixture
def members(kafka: Kafka, redis_url: str, group: str) -> Iterator[Group]:
    """A group that does not exist yet."""
    made = Group(kafka, redis_url, group)
    yield made
    made.close()


@pytest.fixture
def fleet(request: pytest.FixtureRequest, kafka: Kafka, redis_url: str, group: str, tmp_path: Path) -> Iterator[Fleet]:
    """Drivers-to-be of one group. Those at work leave the cores to one that starts; a module's FLEET has more."""
    made = Fleet(kafka, redis_url, group, tmp_path, **{"pace": "1 second"} | getattr(request.module, "FLEET", {}))
    yield made
    made.end()


@pytest.fixture
def short_sessions(members: Group) -> None:
    """For members of tests in which Redis loses its state: a recovery waits for a session."""
    members.session_ms = SHORT_MS


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask brokers that are not there for less than a second."""
    monkeypatch.setattr(connection, "FIRST_CONTACT_MS", 300)
    monkeypatch.setattr(connection, "IN_TIME", {**connection.IN_TIME, "bootstrap_timeout_ms": 300})
    monkeypatch.setattr(writable, "RETRY_INTERVAL_MS", 10)


@pytest.fixture
def closed_clients() -> Iterator[None]:
    """The consumers and producers that this process keeps for its next tasks are closed after the test."""
    yield
    _close_idle()


@pytest.fixture
def tp(kafka: Kafka) -> TopicPartition:
    """The one partition of a new topic with five records."""
    topic = kafka.create_topic("service")
    kafka.produce(topic, keyed(5))
    return TopicPartition(topic, 0)


@pytest.fixture
def calls(
    kafka: Kafka, redis_url: str, group: str, tp: TopicPartition, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Calls]:
    """A stream reader of a new group; a topic of five records."""
    monkeypatch.setattr(reader_process, "exit_on_sigterm", lambda: None)  # this process is pytest's
    with calls_of(kafka, redis_url, group, tp) as made:
        yield made


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command `coop-kafka`."""
    return Run(monkeypatch, capsys)
