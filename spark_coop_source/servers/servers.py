"""A Kafka broker and a Valkey of a test's own, on free ports, with nothing on disk after their end."""

import logging
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from coordinator.errors import EnvironmentMismatchError
from spark_coop_source.servers import programs
from spark_coop_source.servers.java import broker_jars, java_version
from spark_coop_source.servers.programs import HOST

_KEEPER = (sys.executable, "-I", "-S", str(Path(__file__).with_name("keeper.py")))
_SMALL = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
_READY_S = 120.0
_POLL_S = 0.05
_OTHERS = "see the words of the program itself, or name servers that run in COOP_KAFKA and COOP_REDIS"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Servers:
    """Where the servers of a test answer."""

    kafka: str
    """`host:port`, for the option `kafka.bootstrap.servers`."""

    redis: str
    """A URL, for the option `redisUrl`."""


@contextmanager
def servers() -> Iterator[Servers]:
    """Start a Kafka broker without topics and an empty Valkey, which end with the block, or with this process.

    It needs Java 17 or 21 and the extra `testing`. The first start fetches the broker, 44 MB, into the folder that
    `COOP_CACHE` names, else `~/.cache/coop-kafka`. `COOP_KAFKA` and `COOP_REDIS` name servers to use instead.

    Raises `EnvironmentMismatchError`, with the remedy, if something is missing, or if a server does not start.
    """
    with ExitStack() as stack:
        redis = os.environ.get("COOP_REDIS") or f"redis://{_valkey(stack)}/0"
        yield Servers(os.environ.get("COOP_KAFKA") or _kafka(stack), redis)


def _valkey(stack: ExitStack) -> str:
    binary = programs.valkey()

    def command(folder: Path, port: int) -> Sequence[str]:
        settings = ("--bind", HOST, "--port", str(port), "--dir", str(folder), "--save", "", "--appendonly", "no")
        return [binary, *settings]

    def answers(address: str) -> bool:
        return programs.redis_answers(f"redis://{address}/0")

    return programs.tried(lambda: _started("Valkey", stack, command, answers))


def _kafka(stack: ExitStack) -> str:
    java_version()
    cache = os.environ.get("COOP_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "coop-kafka")
    jars = broker_jars(Path(cache).expanduser())
    if not jars.present():
        _log.warning("fetching %s, 44 MB, into %s: half a minute, once", jars.what, jars.folder)
        try:
            jars.fetch(Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent))
        except (OSError, RuntimeError) as error:
            raise EnvironmentMismatchError(f"there is no Kafka for tests: {error}", _OTHERS) from None

    def command(folder: Path, port: int) -> Sequence[str]:
        (controller,) = programs.free_ports(1)
        properties, places = folder / "broker.properties", {"host": HOST, "port": port, "data": folder / "data"}
        properties.write_text(programs.broker_properties({**places, "controller_port": controller}))
        java = programs.in_java(jars, *_SMALL, f"-Djava.io.tmpdir={folder}")
        broker = shlex.join([*java, "kafka.Kafka", str(properties)])
        return ["sh", "-c", f"{shlex.join(programs.formats(java, properties))} && exec {broker}"]

    def answers(address: str) -> bool:
        return programs.live_brokers(address) > 0

    return programs.tried(lambda: _started("Kafka", stack, command, answers))


def _started(
    name: str, stack: ExitStack, command: Callable[[Path, int], Sequence[str]], answers: Callable[[str], bool]
) -> str:
    """The address of a server that answers."""
    folder = Path(tempfile.mkdtemp(prefix="coop-kafka-"))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    (port,), log = programs.free_ports(1), folder / "log"
    with log.open("wb") as output:
        keeper = subprocess.Popen(  # noqa: S603
            [*_KEEPER, str(folder), *command(folder, port)],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for the test
        )
    stack.callback(keeper.communicate, b"end")
    deadline = time.monotonic() + _READY_S
    while keeper.poll() is None and time.monotonic() < deadline:
        if answers(f"{HOST}:{port}"):
            return f"{HOST}:{port}"
        time.sleep(_POLL_S)
    raise EnvironmentMismatchError(f"{name} did not start: {log.read_text(errors='replace')[-2000:]}", _OTHERS)
