"""Hosts on one machine: namespaces of the kernel. Each has network, processes, name and shared memory of its own.

All hosts and this process hang on a bridge, in a network namespace that ends with this process. Needs root, Linux, and
the commands `ip`, `unshare` and `nsenter`. Knows nothing of Spark.
"""

import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

import processes

BASE = "10.77.0.1"
"""The address of this process's own host, on which servers and drivers run."""

Command = Sequence[str | Path]

_BRIDGE, _NETWORK = "cluster", "10.77.0.{}/24"
_READY_S = 10.0


def enter() -> None:
    """Set up the bridge; this process must be in a network namespace of its own."""
    for words in ("link set lo up", f"link add {_BRIDGE} type bridge", f"link set {_BRIDGE} up"):
        _ip(*words.split())
    _ip("address", "add", _NETWORK.format(1), "dev", _BRIDGE)


@dataclass(slots=True)
class Host:
    """A host by its name; `number` is the last part of its address."""

    name: str
    number: int
    folder: Path
    hidden: Sequence[Path] = ()  # folders of this machine that the host does not have
    shared_memory: str = "1g"
    _first: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Its IP address."""
        return _NETWORK.format(self.number).partition("/")[0]

    def start(self) -> None:
        """Begin with one process, which waits; the host ends with it."""
        mounts = [f"mount -t tmpfs -o size={self.shared_memory} tmpfs /dev/shm"]
        mounts += [f"mount -t tmpfs tmpfs {each}" for each in self.hidden]
        boot = " && ".join([f"hostname {self.name}", *mounts, "exec sleep infinity"])
        spaces = ["--net", "--mount", "--uts", "--pid", "--ipc", "--fork", "--kill-child", "--mount-proc"]
        self._first = processes.start(["unshare", *spaces, "sh", "-c", boot], self.folder / f"{self.name}.log")
        deadline = time.monotonic() + _READY_S
        while not self._booted():
            if time.monotonic() > deadline:
                raise RuntimeError(f"host {self.name}: {processes.tail(self.folder / f'{self.name}.log')}")
            time.sleep(0.02)
        self._connect()

    def _booted(self) -> bool:
        return any(each.name() == "sleep" for each in self._processes)

    @property
    def _processes(self) -> list[psutil.Process]:
        if self._first is None:
            raise RuntimeError(f"host {self.name} is off")
        return psutil.Process(self._first.pid).children(recursive=True)

    @property
    def _pid(self) -> int:
        """The host's first process."""
        return next(each.pid for each in self._processes if each.name() == "sleep")

    @property
    def _link(self) -> str:
        return f"to-{self.name}"

    def _connect(self) -> None:
        _ip("link", "add", self._link, "type", "veth", "peer", "name", "eth0", "netns", str(self._pid))
        _ip("link", "set", self._link, "master", _BRIDGE, "up")
        for words in ("link set lo up", f"address add {_NETWORK.format(self.number)} dev eth0", "link set eth0 up"):
            subprocess.run(self._inside(["ip", *words.split()]), check=True)

    def _inside(self, command: Command) -> list[str | Path]:
        return ["nsenter", "--target", str(self._pid), "--net", "--mount", "--uts", "--pid", "--ipc", "--", *command]

    def run(self, command: Command, log: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Start a process of the host; it ends with the host."""
        return processes.start(self._inside(command), log, environment=environment)

    def kill(self) -> None:
        """SIGKILL for all of its processes; its network and its shared memory vanish."""
        if self._first is not None:
            processes.kill(self._first)
            self._first = None

    def cut(self, *, off: bool) -> None:
        """Cut its network, or connect it again. Nobody is told: packets are lost."""
        _ip("link", "set", self._link, "down" if off else "up")

    def received_from(self, server: str) -> dict[str, int]:
        """Bytes received on each open connection to a server, host:port, by the port of this host."""
        sockets = subprocess.run(
            self._inside(["ss", "-tinOH", "dst", server]), capture_output=True, text=True, check=True
        )
        found = (re.search(r":(\d+) +\S+:\d+ .*bytes_received:(\d+)", line) for line in sockets.stdout.splitlines())
        return {each[1]: int(each[2]) for each in found if each}

    @property
    def shared_memory_bytes(self) -> int:
        """Bytes in its shared memory."""
        folder = Path(f"/proc/{self._pid}/root/dev/shm")
        return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)  # noqa: S607
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(words)}: {done.stderr.strip()}")


def in_own_network(command: Command) -> int:
    """Run a command in a network and a mount namespace of its own; its exit code."""
    return subprocess.run(["unshare", "--net", "--mount", "--", *command], check=False).returncode  # noqa: S607
