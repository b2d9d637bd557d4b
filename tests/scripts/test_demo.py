"""`scripts/demo` as a person runs it: its words, its exit code, and what it leaves behind."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from broker_jars import ROOT
from verdict import require

pytestmark = pytest.mark.server
DEMO = ROOT / "scripts" / "demo"
SECONDS = 170


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A demo of its own: its own servers, and a folder for everything temporary."""
    kept = {name: value for name, value in os.environ.items() if name not in ("COOP_KAFKA", "COOP_REDIS")}
    return {**kept, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}


@pytest.fixture
def running(environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A demo that is about to start its job, or has just started it."""
    demo = subprocess.Popen(
        [DEMO, "--rows", "5000"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        assert demo.stdout is not None
        assert any("tasks will share it" in line for line in demo.stdout)
        yield demo
    finally:
        demo.kill()
        demo.communicate()


@pytest.mark.long
@pytest.mark.parametrize(
    ("number", "code"),
    [
        pytest.param(signal.SIGINT, 130, id="Ctrl-C"),
        pytest.param(signal.SIGTERM, 128 + signal.SIGTERM, id="kill"),
        pytest.param(signal.SIGKILL, -signal.SIGKILL, id="kill -9"),
    ],
)
def test_a_demo_that_is_ended_leaves_nothing_running(
    running: subprocess.Popen[str], number: int, code: int, tmp_path: Path
) -> None:
    children = psutil.Process(running.pid).children(recursive=True)
    assert {"java", "valkey-server"} <= {child.name() for child in children}
    running.send_signal(number)
    running.communicate(timeout=SECONDS)
    assert running.returncode == code
    assert not psutil.wait_procs(children, timeout=SECONDS)[1]
    assert number == signal.SIGKILL or not list(tmp_path.glob("coop-kafka-demo-*"))


INTERRUPTED = """
import sys
sys.path.insert(0, sys.argv.pop(1))
import psutil
import demo, job

start = job.Job.start

def interrupted(self):
    start(self)
    raise KeyboardInterrupt

job.Job.start = interrupted
code = demo.main()
print(code, len(psutil.Process().children(recursive=True)))
"""


@pytest.mark.long
def test_ctrl_c_in_the_moment_in_which_spark_starts_leaves_nothing(environment: dict[str, str], tmp_path: Path) -> None:
    lib = str(DEMO.with_name("lib"))
    command = [f"{lib}/environment.sh", "python", "-c", INTERRUPTED, lib, "--rows", "5000"]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, timeout=SECONDS, check=True)
    assert done.stdout.splitlines()[-1] == "130 0", done.stdout
    assert not list(tmp_path.glob("coop-kafka-demo-*"))


@pytest.mark.long
@pytest.mark.timeout(2 * SECONDS)
def test_a_killed_job_ends_with_a_good_verdict_and_kept_servers_stay(environment: dict[str, str]) -> None:
    done = subprocess.run(
        [DEMO, "--rows", "4000", "--crash", "--keep"], env=environment, capture_output=True, text=True, check=False
    )
    end = re.search(r"^To end it: kill (\d+) (\d+) && sleep 3 && rm -r (\S+)$", done.stdout, re.MULTILINE)
    assert end, done.stdout + done.stderr
    servers = [psutil.Process(int(pid)) for pid in end.groups()[:2]]
    try:
        require("records done: " not in done.stdout, done.stdout)  # a verdict, and not a good one
        assert done.returncode == 0
        assert re.search(r"^Killed the driver .* in the middle of batch [1-7]$", done.stdout, re.MULTILINE)
        assert "4,000 records done, each exactly once in the sink: 0 lost, 0 repeated, 0 out of order." in done.stdout
        line = re.search(r"^ +export (COOP_KAFKA=\S+) (COOP_REDIS=\S+)$", done.stdout, re.MULTILINE)
        assert line, "it prints the line that the README's examples need"
        addresses = dict(each.split("=", 1) for each in line.groups())
        assert ("redis-cli" in done.stdout) is (shutil.which("redis-cli") is not None)
        look = re.search(r"^ +(\S+coop-kafka describe .*)$", done.stdout, re.MULTILINE)
        assert look
        table = subprocess.run(
            look[1].split(), env=environment | addresses, capture_output=True, text=True, timeout=60, check=True
        ).stdout
        assert re.search(r"\b4000\b", table)
        assert re.search(r"^  source \S+ && PYSPARK_PYTHON=\S+ spark-submit ", done.stdout, re.MULTILINE)
        assert [server.is_running() for server in servers] == [True, True]
    finally:
        for server in servers:
            server.terminate()
        _, left = psutil.wait_procs(servers, timeout=60)
    assert not left


@pytest.mark.parametrize("rows", ["0", "-1", "336777", "many", "1.5"])
def test_a_number_of_rows_that_cannot_be_is_refused(rows: str) -> None:
    done = subprocess.run([DEMO, f"--rows={rows}"], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "is not a number from 1 to 336776" in done.stderr) == (2, True)
