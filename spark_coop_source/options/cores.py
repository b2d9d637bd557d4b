"""The cores that this process may use: the default of `slots`. Runs in the Python process beside the driver.

The machine's number of cores is too much in a container, which sees all cores of its node.
"""

import os
from contextlib import suppress
from math import ceil
from pathlib import Path

CONTROL_GROUP = Path("/sys/fs/cgroup")


def cores(control_group: Path = CONTROL_GROUP) -> int:
    """The number of cores: of the process's affinity, and at most the limit of its container, rounded up."""
    named = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for limit in (_version_2, _version_1):
        with suppress(OSError, ValueError):
            return max(1, min(named, ceil(limit(control_group))))
    return named


def _version_2(group: Path) -> float:
    quota, period = (group / "cpu.max").read_text().split()
    return int(quota) / int(period)  # "max" is no limit, and no number


def _version_1(group: Path) -> float:
    quota, period = (int((group / "cpu" / f"cpu.cfs_{name}_us").read_text()) for name in ("quota", "period"))
    if quota < 0:
        raise ValueError("no limit")
    return quota / period
