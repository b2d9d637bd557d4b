"""Child processes that never outlive their parent.

Knows nothing of the programs.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

import psutil

_DIES_WITH_US = (sys.executable, "-I", "-S", Path(__file__).with_name("bound.py"))
_GRACE_S = 10.0
_POLL_S = 0.02


def start(
    command: Sequence[str | Path],
    log: Path,
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    outlives_parent: bool = False,
) -> subprocess.Popen[bytes]:
    """Start a child in a session of its own, so that Ctrl-C reaches only us; it works in `folder`, writes to `log`."""
    bound: Sequence[str | Path] = () if outlives_parent or sys.platform != "linux" else _DIES_WITH_US
    with log.open("ab") as output:
        return subprocess.Popen(
            [*bound, str(os.getpid()), *command] if bound else command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
        )


def stalled_s() -> float:
    """For how long since the start of this machine some process has waited for a core; 0 where Linux does not tell."""
    with suppress(OSError):
        some = Path("/proc/pressure/cpu").read_text().splitlines()[0]
        return int(some.rpartition("=")[2]) / 1_000_000
    return 0.0


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a child and its family: by SIGTERM first, by SIGKILL after ten seconds."""
    family = _family(process)
    for member in family:
        with suppress(psutil.NoSuchProcess):
            member.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE_S)
    psutil.wait_procs(family, timeout=_GRACE_S)
    _kill_all(process)


def kill_children() -> None:
    """Kill every child that is left with its family: Ctrl-C may come when one is started, and nobody knows it yet.

    It freezes all of them first, so that none can start another process meanwhile.
    """
    frozen = set[psutil.Process]()
    while found := {*psutil.Process().children(recursive=True)} - frozen:
        for child in found:
            with suppress(psutil.NoSuchProcess):
                child.suspend()
        frozen |= found
    for child in frozen:
        with suppress(psutil.NoSuchProcess):
            child.kill()
    psutil.wait_procs(frozen, timeout=_GRACE_S)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a child and its family at once with SIGKILL, as a lost machine would.

    It freezes the child first, so that the child cannot start another process during the count.
    """
    process.send_signal(signal.SIGSTOP)
    _kill_all(process)


def freeze(process: subprocess.Popen[bytes]) -> None:
    """Let a child and its family stand still, until `thaw`."""
    for member in _family(process):
        member.suspend()


def thaw(process: subprocess.Popen[bytes]) -> None:
    """Let a child and its family go on."""
    for member in _family(process):
        member.resume()


def _family(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """A child that lives, its descendants, and the rest of its session: their parents may have ended."""
    descendants = []
    if process.poll() is None:
        first = psutil.Process(process.pid)
        descendants = [first, *first.children(recursive=True)]
    return list(dict.fromkeys((*descendants, *_session(process.pid))))


def _session(number: int) -> Iterator[psutil.Process]:
    for member in psutil.process_iter():
        with suppress(ProcessLookupError, psutil.NoSuchProcess):
            if os.getsid(member.pid) == number and member.status() != psutil.STATUS_ZOMBIE:
                yield member


def _kill_all(process: subprocess.Popen[bytes]) -> None:
    """Kill until nobody is left: a process that ended may have started another one meanwhile."""
    while family := _family(process):
        for member in family:
            with suppress(psutil.NoSuchProcess):
                member.kill()
        if process.poll() is None:
            process.wait()
        psutil.wait_procs(family, timeout=_GRACE_S)


def wait_until(happened: Callable[[], bool], seconds: float, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until `happened`; raises `RuntimeError` with the end of `log` if the process ends or time runs out."""
    deadline = time.monotonic() + seconds
    while not happened():
        if process.poll() is not None:
            raise RuntimeError(f"it ended with code {process.returncode}:\n{tail(log)}")
        if time.monotonic() > deadline:
            raise RuntimeError(f"it was not ready after {seconds:.0f} s:\n{tail(log)}")
        time.sleep(_POLL_S)


def tail(log: Path, characters: int = 3000) -> str:
    """The end of a log file."""
    return log.read_text(errors="replace")[-characters:] if log.is_file() else "(no log)"


@contextmanager
def ending_politely() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into `SystemExit`, so that `finally` runs and stops the children."""

    def leave(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Hold back Ctrl-C and SIGTERM for the short time of cleaning up."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
