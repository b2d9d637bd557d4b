"""No child of ours outlives us, however we end."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

import processes

FAMILY = """
import signal, subprocess, sys, time
if {deaf}:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session={apart})
print("ready", flush=True)
time.sleep(600)
"""
DEADLINE_S = 20


def family(*, deaf: bool = False, apart: bool = False) -> list[str]:
    """A child with a child of its own, on request deaf to SIGTERM, or with the grandchild in a session apart."""
    return [sys.executable, "-c", FAMILY.format(deaf=deaf, apart=apart)]


def started(command: list[str], log: Path) -> tuple[subprocess.Popen[bytes], list[psutil.Process]]:
    process = processes.start(command, log)
    processes.wait_until(lambda: "ready" in log.read_text(), DEADLINE_S, process, log)
    return process, [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]


@pytest.mark.parametrize(
    ("end", "apart"),
    [
        pytest.param(processes.stop, False, id="stop ends child and grandchild"),
        pytest.param(processes.kill, False, id="kill ends child and grandchild"),
        pytest.param(processes.kill, True, id="kill ends a grandchild in a session of its own"),
    ],
)
def test_no_process_is_left(end: Callable[[subprocess.Popen[bytes]], None], apart: bool, tmp_path: Path) -> None:
    process, everybody = started(family(apart=apart), tmp_path / "log")
    assert len(everybody) == 2
    end(process)
    assert not psutil.wait_procs(everybody, timeout=DEADLINE_S)[1]


def test_stop_forces_a_child_that_is_deaf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_GRACE_S", 0.2)
    process, everybody = started(family(deaf=True), tmp_path / "log")
    processes.stop(process)
    assert process.returncode == -signal.SIGKILL
    assert not psutil.wait_procs(everybody, timeout=DEADLINE_S)[1]


LATE = """
import signal, subprocess, sys, time
def leave(*_):
    late = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    print("late", late.pid, flush=True)
    sys.exit()
signal.signal(signal.SIGTERM, leave)
print("ready", flush=True)
time.sleep(600)
"""


def test_stop_also_ends_a_process_that_a_child_starts_meanwhile(tmp_path: Path) -> None:
    process, _ = started([sys.executable, "-c", LATE], tmp_path / "log")
    processes.stop(process)
    late = int((tmp_path / "log").read_text().rpartition("late ")[2])
    assert not psutil.pid_exists(late) or psutil.Process(late).status() == psutil.STATUS_ZOMBIE


def test_stop_of_a_child_that_has_ended_does_nothing(tmp_path: Path) -> None:
    process = processes.start([sys.executable, "-c", ""], tmp_path / "log")
    process.wait(DEADLINE_S)
    processes.stop(process)
    processes.kill(process)
    assert process.returncode == 0


FORGETFUL = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import psutil
import processes
log = Path(sys.argv[2])
processes.wait_until(lambda: "ready" in log.read_text(), 20, processes.start(sys.argv[3:], log), log)
before = psutil.Process().children(recursive=True)
processes.kill_children()
print(len(before), len(psutil.wait_procs(before, timeout=20)[1]))
"""


def test_a_child_that_nobody_knows_is_ended_too(tmp_path: Path) -> None:
    words = [str(Path(processes.__file__).parent), str(tmp_path / "log"), *family(deaf=True, apart=True)]
    done = subprocess.run([sys.executable, "-c", FORGETFUL, *words], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.split() == ["2", "0"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can bind a child's life to its parent's")
def test_a_child_dies_when_its_parent_is_killed(tmp_path: Path) -> None:
    child_log = tmp_path / "child"
    code = (
        "import sys, time; sys.path.insert(0, sys.argv[1]); from pathlib import Path; import processes\n"
        "print(processes.start(sys.argv[3:], Path(sys.argv[2])).pid, flush=True); time.sleep(600)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code, str(Path(processes.__file__).parent), str(child_log), *family()],
        stdout=subprocess.PIPE,
    )
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.communicate()
    assert not psutil.wait_procs([child], timeout=DEADLINE_S)[1]


def test_waiting_for_a_child_that_ends_raises_its_last_words(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = processes.start([sys.executable, "-c", "import sys; sys.exit('no such port')"], log)
    with pytest.raises(RuntimeError, match="ended with code 1:\nno such port"):
        processes.wait_until(lambda: False, DEADLINE_S, process, log)


def test_waiting_ends_at_the_deadline(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process, _ = started(family(), log)
    before = time.monotonic()
    with pytest.raises(RuntimeError, match="not ready"):
        processes.wait_until(lambda: False, 0.1, process, log)
    assert time.monotonic() - before < DEADLINE_S
    processes.stop(process)


@pytest.mark.skipif(not Path("/proc/pressure/cpu").exists(), reason="this Linux does not tell")
def test_the_time_in_which_something_waited_for_a_core_is_in_seconds() -> None:
    before = processes.stalled_s()
    assert 0 < before <= processes.stalled_s() < float(Path("/proc/uptime").read_text().split()[0])
