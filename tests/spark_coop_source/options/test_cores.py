"""The default of `slots` are the cores that the process may use, also in a container."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from spark_coop_source.options.cores import cores

ALL = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("files", "found"),
    [
        pytest.param({}, ALL, id="no control group"),
        pytest.param({"cpu.max": "max 100000\n"}, ALL, id="no limit"),
        pytest.param({"cpu.max": "50000 100000\n"}, 1, id="half a core"),
        pytest.param({"cpu.max": "100000 100000\n"}, 1, id="a core"),
        pytest.param({"cpu.max": "150000 100000\n"}, min(2, ALL), id="a core and a half"),
        pytest.param({"cpu.max": "6400000 100000\n"}, ALL, id="more than there are"),
        pytest.param({"cpu.max": "what?\n"}, ALL, id="another form"),
        pytest.param(
            {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, ALL, id="version 1, no limit"
        ),
        pytest.param(
            {"cpu/cpu.cfs_quota_us": "70000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1, id="version 1, a limit"
        ),
    ],
)
def test_cores_are_at_most_the_limit_of_the_container(tmp_path: Path, files: dict[str, str], found: int) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert cores(tmp_path) == found


def test_slots_are_the_cores_of_the_processs_affinity() -> None:
    """`taskset`, and the static policy of Kubernetes, bind a process to some cores."""
    program = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "from spark_coop_source.options.options import validate\n"
        "given = {'kafka.bootstrap.servers': 'k:1', 'subscribe': 'orders'}\n"
        "print(validate(given, streaming=False).slots)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "1\n"
