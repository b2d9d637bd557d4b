"""The name of the application that a reader process belongs to. It differs for each driver, also across containers.

Two containers can share a host name, and their drivers a process id. So the name also has facts from /proc and the
environment. A system without /proc lacks some of them; the name then uses the rest. Driver side.
"""

import hashlib
import os
from contextlib import suppress
from pathlib import Path


def application(host: str, driver: int) -> str:
    """The name of the application whose driver has this process id: host/pid/digest. All its queries share it."""
    digest = hashlib.sha256("\0".join(_facts(driver)).encode()).hexdigest()
    return f"{host}/{driver}/{digest[:16]}"


def _facts(driver: int) -> tuple[str, ...]:
    """Facts that differ between drivers of one host name and process id."""
    boot = namespace = started = ""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()  # of the kernel, so of the machine
    with suppress(OSError):
        namespace = str(Path("/proc/self/ns/pid").readlink())  # of the container
    with suppress(OSError, IndexError):
        started = Path(f"/proc/{driver}/stat").read_text().rpartition(")")[2].split()[19]  # process ids are reused
    return boot, namespace, started, os.environ.get("SPARK_LOCAL_DIRS", "")  # Spark makes a folder for each application
