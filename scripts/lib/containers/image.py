"""The image of `conf/image`, and containers of it, by the command `podman`. Knows nothing of Spark."""

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import processes
from broker_jars import ROOT

NAME = "coop-kafka"

_ANYBODY = "4711:0"
"""A user that the image does not know, as OpenShift has them."""

Words = Sequence[str | Path]


def build(base: str | None) -> None:
    """Build the image; `base` stands for its Debian: an image, or a file with a root file system."""
    words: list[str | Path] = ["--tag", NAME, "--file", ROOT / "conf" / "image" / "Dockerfile"]
    if base and Path(base).is_file():
        base = _podman(["import", base]).strip()
    words += ["--build-arg", f"BASE={base}"] if base else []
    subprocess.run(["podman", "build", "--network", "host", *words, ROOT], check=True)  # noqa: S607


@dataclass(frozen=True, slots=True)
class Container:
    """A container by its name, which is its host name too. It shares this host's network and some folders."""

    name: str
    log: Path
    folders: Sequence[Path]  # with the same paths inside
    environment: Mapping[str, str]

    def start(self, command: Words) -> subprocess.Popen[bytes]:
        """Run the image with this command; the process ends with the container, and with its exit code."""
        words = ["run", "--rm", "--name", self.name, "--network", "host", "--uts", "private", "--hostname", self.name]
        words += ["--user", _ANYBODY, "--passwd=false", "--shm-size", "400m"]
        words += [word for folder in self.folders for word in ("--volume", f"{folder}:{folder}")]
        words += [word for name, value in self.environment.items() for word in ("--env", f"{name}={value}")]
        return processes.start(["podman", *words, NAME, *command], self.log)

    def inside(self, command: Words) -> str:
        """Run a command in the running container; what it prints."""
        return _podman(["exec", self.name, *command])

    def stop(self, grace_s: int) -> None:
        """SIGTERM to its first process as a pod gets it, then SIGKILL; nothing if it does not run."""
        _podman(["stop", "--ignore", "--time", str(grace_s), self.name])

    def kill(self) -> None:
        """SIGKILL to all of it."""
        _podman(["rm", "--force", "--ignore", "--time", "0", self.name])


def _podman(words: Words) -> str:
    done = subprocess.run(["podman", *words], capture_output=True, text=True, check=False)  # noqa: S607
    if done.returncode:
        raise RuntimeError(f"podman {words[0]}: {done.stderr.strip()}")
    return done.stdout
