"""Two Valkeys, one a copy of the other, and three sentinels that name the master of the two."""

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import redis

import processes
import servers
from spark_coop_source.servers import programs

SERVICE = "positions"
_SERVER_CONF = Path(__file__).parents[2] / "conf" / "valkey.conf"
_SENTINEL_CONF = """\
port {port}
bind 127.0.0.1
dir {folder}
sentinel monitor {service} 127.0.0.1 {master} 2
sentinel down-after-milliseconds {service} 1000
sentinel failover-timeout {service} 5000
"""


class Watched:
    """The servers by port, and the ports of the sentinels."""

    def __init__(self, folder: Path, stack: ExitStack, environment: Mapping[str, str]) -> None:
        self._folder, self._stack, self._environment = folder, stack, environment
        first, second, *self._sentinels = servers.free_ports(5)
        self._servers = {first: self._server(first, None), second: self._server(second, first)}
        self._wait_for_copy(second)
        self._watching = [self._sentinel(port, first) for port in self._sentinels]
        _wait(self._complete, "the sentinels know the copy and each other", 30)

    @property
    def url(self) -> str:
        """The url of the master, whichever it is."""
        places = ",".join(f"127.0.0.1:{port}" for port in self._sentinels)
        return f"redis+sentinel://{places}/{SERVICE}"

    @property
    def master(self) -> int:
        """The port of the master, as the first sentinel knows it."""
        with closing(redis.Redis(port=self._sentinels[0])) as sentinel:
            _, port = cast(tuple[str, int], sentinel.sentinel_get_master_addr_by_name(SERVICE))
            return port

    def folder(self, port: int) -> Path:
        """The working folder of a server."""
        return self._folder / str(port)

    def kill_master(self) -> None:
        """Kill the master as a lost machine would; the sentinels then make the copy the master."""
        dead = self.master
        processes.kill(self._servers[dead])
        _wait(lambda: self.master != dead, "the copy is the master", 30)

    def freeze_master(self) -> int:
        """Let the master stand still until `thaw`; returns its port once the copy is the master."""
        frozen = self.master
        processes.freeze(self._servers[frozen])
        _wait(lambda: self.master != frozen, "the copy is the master", 30)
        return frozen

    def thaw(self, port: int) -> None:
        """Let a former master go on; returns once it is the copy."""
        processes.thaw(self._servers[port])
        self._wait_for_copy(port)

    def start_dead(self) -> None:
        """Start the server that was killed, with its settings and data; returns once it is the copy."""
        (port,) = (port for port, process in self._servers.items() if process.poll() is not None)
        self._servers[port] = self._run(port)
        self._wait_for_copy(port)

    def roll_back(self, seconds: float) -> None:
        """Both come back with what the master had so many seconds before, as from a copy of its disk."""
        master = self.master
        (copy,) = self._servers.keys() - {master}
        folder, kept = self.folder(master), self._folder / "kept"
        shutil.copytree(folder, kept)
        time.sleep(seconds)
        for sentinel in self._watching:  # else they make the copy the master meanwhile
            processes.freeze(sentinel)
        for port in (copy, master):
            processes.kill(self._servers[port])
        shutil.rmtree(folder)
        kept.rename(folder)
        for port in (master, copy):
            self._servers[port] = self._run(port)
        self._wait_for_copy(copy)
        for sentinel in self._watching:
            processes.thaw(sentinel)

    def wait_for_copy(self) -> None:
        """Wait until the server that is not the master is its copy."""
        (copy,) = self._servers.keys() - {self.master}
        self._wait_for_copy(copy)

    def _wait_for_copy(self, port: int) -> None:
        with closing(redis.Redis(port=port)) as copy:
            _wait(lambda: _follows(copy), "the other server is its copy", 180)  # sentinels rest if the machine is busy

    def _server(self, port: int, master: int | None) -> subprocess.Popen[bytes]:
        """A server. Sentinels rewrite its file of settings."""
        of_master = f"replicaof 127.0.0.1 {master}\n" if master else ""
        settings = f"{_SERVER_CONF.read_text()}\nport {port}\ndir {self.folder(port)}\n{of_master}"
        settings += "enable-protected-configs local\n"  # `dir` may be set
        return self._started(port, settings)

    def _sentinel(self, port: int, master: int) -> subprocess.Popen[bytes]:
        settings = _SENTINEL_CONF.format(port=port, folder=self.folder(port), service=SERVICE, master=master)
        return self._started(port, settings, "--sentinel")

    def _started(self, port: int, settings: str, *more: str) -> subprocess.Popen[bytes]:
        folder = self.folder(port)
        folder.mkdir()
        (folder / "server.conf").write_text(settings)
        return self._run(port, *more)

    def _run(self, port: int, *more: str) -> subprocess.Popen[bytes]:
        folder = self.folder(port)
        log = folder / "server.log"
        process = processes.start(
            [programs.valkey(), folder / "server.conf", *more], log, environment=self._environment
        )
        self._stack.callback(processes.stop, process)
        processes.wait_until(lambda: _answers(port), 20, process, log)
        return process

    def _complete(self) -> bool:
        """Whether every sentinel knows both others and the copy, and agrees with one other at least."""
        return all(self._knows_all(port) for port in self._sentinels)

    def _knows_all(self, port: int) -> bool:
        try:
            with closing(redis.Redis(port=port)) as sentinel:
                known = cast(dict[str, Any], sentinel.sentinel_master(SERVICE))
        except redis.RedisError:
            return False
        return (known["num-other-sentinels"], known["num-slaves"], known["is_master"]) == (2, 1, True)


def _follows(copy: redis.Redis) -> bool:
    try:
        return copy.info("replication").get("master_link_status") == "up"
    except redis.RedisError:
        return False


def _wait(condition: Callable[[], bool], what: str, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"not within {seconds:.0f} s: {what}")
        time.sleep(0.05)


def _answers(port: int) -> bool:
    try:
        with closing(redis.Redis(port=port)) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False


@contextmanager
def watched(folder: Path, environment: Mapping[str, str] = MappingProxyType({})) -> Iterator[Watched]:
    """The servers, stopped afterwards. Each works in its `folder`, with this in its environment."""
    with ExitStack() as stack:
        yield Watched(folder, stack, environment)
