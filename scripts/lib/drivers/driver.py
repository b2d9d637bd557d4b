"""One application as a user runs it, by spark-submit, with a folder that outlives its drivers."""

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

import processes
from broker_jars import ROOT
from coordinator.redis.group_state import GroupState
from drivers import points
from job import SparkSubmit

JOB, _HOOK = Path(__file__).with_name("job.py"), Path(__file__).parent / "hook"
_SLOTS = 2
_SHORT_LIFE = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # a JVM starts with half the CPU time


@dataclass(slots=True)
class Driver:
    """An application and its current driver."""

    folder: Path
    options: Mapping[str, str]
    pace: str = "0 seconds"  # the interval of its trigger
    job: Path = JOB
    cluster: Sequence[str] = ()  # see `SparkSubmit`
    process: subprocess.Popen[bytes] | None = None
    member: str = ""
    disturbed: list[int] = field(default_factory=list)  # number of finished batches at each disturbance
    had: int = 0  # number of finished batches at its last start

    @property
    def name(self) -> str:
        """Its name in messages."""
        return self.folder.name

    @property
    def log(self) -> Path:
        """Its log."""
        return self.folder / "driver.log"

    @property
    def lines(self) -> list[str]:
        """Its finished batches, one line each."""
        with suppress(FileNotFoundError):
            text = (self.folder / "output").read_text()
            return text.splitlines() if text.endswith("\n") else text.splitlines()[:-1]
        return []

    def start(self) -> None:
        """Start a driver on the folder's checkpoint."""
        self.folder.mkdir(exist_ok=True)
        (self.folder / "stop").unlink(missing_ok=True)
        points.disarm(self.folder)
        path = [ROOT / "scripts" / "lib", os.environ.get("PYTHONPATH", "") if self.cluster else _HOOK]
        self.had = len(self.lines)
        java = f"{_SHORT_LIFE} {os.environ.get('JDK_JAVA_OPTIONS', '')}"
        environment = {
            points.FOLDER: str(self.folder),
            "PYTHONPATH": os.pathsep.join(map(str, path)),
            "JDK_JAVA_OPTIONS": java,
        }
        words = [str(self.folder), json.dumps(dict(self.options)), self.pace]
        submit = SparkSubmit(self.job, words, self.folder, self.log, _SLOTS, self.cluster)
        self.process = submit.start(environment)

    @property
    def running(self) -> subprocess.Popen[bytes]:
        """Its process; raises `RuntimeError` if it has failed."""
        if self.process is None or self.process.poll() is not None:
            raise RuntimeError(f"driver {self.name} does not run:\n{processes.tail(self.log)}")
        return self.process

    def works(self, state: GroupState) -> bool:
        """Whether it is a member that owns a range; remembers the member id."""
        running = self.running
        mine = [m for m, fields in state.members.items() if self.is_member(fields, running)]
        self.member = mine[0] if mine else self.member
        return bool(mine) and self.member in owners(state)

    def is_member(self, fields: Mapping[str, str], running: subprocess.Popen[bytes]) -> bool:
        """Whether a member with these fields is the running driver."""
        return running.pid in _ancestors(int(fields.get("pid", "0")))

    def stands(self) -> bool:
        """Whether it has reached the armed point; raises `RuntimeError` if it failed before."""
        return self.running is self.process and points.reached(self.folder)

    @property
    def in_a_batch(self) -> bool:
        """Whether Spark has planned a batch, and not completed it."""
        planned, completed = (self.folder / "checkpoint" / name for name in ("offsets", "commits"))
        return {p.name for p in planned.glob("[0-9]*")} > {p.name for p in completed.glob("[0-9]*")}

    @property
    def finished(self) -> int:
        """Number of batches finished since its last start."""
        return len(self.lines) - self.had

    # -- disturbances --------------------------------------------------------------------------

    def kill(self) -> None:
        """SIGKILL for all of its processes, as a lost machine would."""
        processes.kill(self.running)
        self.disturbed.append(len(self.lines))

    def kill_jvm(self) -> None:
        """SIGKILL for the JVM alone: its reader process outlives it."""
        self.running.kill()
        self.running.wait()
        self.disturbed.append(len(self.lines))

    def ask_to_stop(self) -> None:
        """Request a normal stop, as `query.stop()` does; it runs on for a moment."""
        (self.folder / "stop").touch()

    def stopped(self) -> bool:
        """Whether it has stopped normally; raises `RuntimeError` if it failed instead."""
        if self.process is None or self.process.poll() is None:
            return False
        if self.process.returncode:
            raise RuntimeError(f"driver {self.name} failed:\n{processes.tail(self.log)}")
        self.disturbed.append(len(self.lines))
        return True

    def freeze(self) -> None:
        """SIGSTOP for all of its processes, the heartbeat included."""
        self._signal(signal.SIGSTOP)
        self.disturbed.append(len(self.lines))

    def wake(self) -> None:
        """SIGCONT."""
        self.disturbed.append(len(self.lines) + 1)  # the frozen batch finishes late
        self._signal(signal.SIGCONT)

    def end(self) -> None:
        """Kill everything that still runs. Others may repeat its last batch, as after `kill`."""
        if self.process is None:
            return
        ran = self.process.poll() is None
        self._end(self.process)
        if ran:
            self.disturbed.append(len(self.lines))

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        with suppress(RuntimeError, psutil.NoSuchProcess):
            self._signal(signal.SIGCONT)
        processes.stop(process)

    def _signal(self, number: int) -> None:
        first = psutil.Process(self.running.pid)
        for process in (first, *first.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)


def _ancestors(pid: int) -> set[int]:
    """The processes that started this one, directly or not; empty if it has ended."""
    with suppress(psutil.NoSuchProcess):
        return {p.pid for p in psutil.Process(pid).parents()}
    return set()


def owners(state: GroupState) -> set[str]:
    """The members that own a range."""
    return {member for of_tp in state.owners.values() for _, _, member in of_tp}
