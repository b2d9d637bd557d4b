"""Which application a reader process belongs to: no two drivers have the same name, whatever containers they run in.

Two containers can share a host name, and their drivers a process id. Reads /proc and the environment; where a fact is
missing, as on a system without /proc, the others must do. Driver side.
"""

import hashlib
import os
from contextlib import suppress
from pathlib import Path


def application(host: str, driver: int) -> str:
    """The name of the application whose driver has this process id, the same for all its queries: host/pid/digest."""
    digest = hashlib.sha256("\0".join(_facts(driver)).encode()).hexdigest()
    return f"{host}/{driver}/{digest[:16]}"


def _facts(driver: int) -> tuple[str, ...]:
    """What tells drivers of one host name and process id apart."""
    boot = namespace = started = ""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()  # of the kernel, so of the machine
    with suppress(OSError):
        namespace = str(Path("/proc/self/ns/pid").readlink())  # of the container
    with suppress(OSError, IndexError):
        started = Path(f"/proc/{driver}/stat").read_text().rpartition(")")[2].split()[19]  # ids of processes come again
    return boot, namespace, started, os.environ.get("SPARK_LOCAL_DIRS", "")  # Spark makes a folder for each application
