"""A Valkey that one test has for itself: it may be stopped, started again, emptied or set back to an old copy."""

import shutil
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import psutil
import redis

import servers


class OwnValkey:
    """A server on a port that stays the same over restarts."""

    def __init__(self, folder: Path, more: Sequence[str] = ()) -> None:
        """`more`: settings of the server, as on its command line."""
        self.data, (self._port,), self._more = folder / "data", servers.free_ports(1), more
        self._server = self._started()

    def restart(self, *, emptied: bool = False) -> None:
        """Stop it if it runs, start it with what it wrote, or with nothing."""
        self.stop()
        if emptied:
            shutil.rmtree(self.data)
        self._server = self._started()

    def configure(self, **settings: str) -> None:
        """Change settings of the server while it runs; `_` stands for `-`."""
        with closing(redis.Redis.from_url(self.address)) as client:
            for name, value in settings.items():
                client.config_set(name.replace("_", "-"), value)

    def follow_nobody(self) -> None:
        """Make it the replica of a server that does not exist: it answers reads, and refuses writes."""
        with closing(redis.Redis.from_url(self.address)) as client:
            client.replicaof(servers.HOST, 1)

    @property
    def port(self) -> int:
        """Its port."""
        return self._port

    @property
    def address(self) -> str:
        """Its url."""
        return self._server.address

    @property
    def run_id(self) -> str:
        """Its identity, which it keeps as long as it runs."""
        with closing(redis.Redis.from_url(self.address, decode_responses=True)) as client:
            return str(client.info()["run_id"])

    @property
    def process(self) -> psutil.Process:
        """The server of the moment."""
        assert self._server.process is not None
        return psutil.Process(self._server.process.pid)

    def stop(self) -> None:
        """Stop it; it may be stopped already."""
        self._server.stop()

    def _started(self) -> servers.Server:
        self.data.mkdir(parents=True, exist_ok=True)
        return servers.start_valkey(self.data, self._port, more=self._more)
