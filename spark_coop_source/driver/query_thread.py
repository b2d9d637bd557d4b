"""The query that a reader process belongs to. Spark starts all readers of a query on that query's own thread.

Linux lists the children of each thread, so a reader can look for the driver's thread that started it. Driver side;
reads /proc alone.
"""

import hashlib
import os
from pathlib import Path

QUERY_THREAD = "stream "
"""Prefix of the kernel's name of such a thread; Java's is "stream execution thread for ..."."""


def query_of(driver: int) -> str:
    """A name for the query of this process: the same for all its readers, and different on every host.

    Empty where the system does not show it: no Linux, a kernel without CONFIG_PROC_CHILDREN, a sandbox.
    """
    try:
        threads = [t for t in Path(f"/proc/{driver}/task").iterdir() if _started_me(t)]
        return _digest(threads[0]) if threads else ""
    except OSError:
        return ""


def _started_me(thread: Path) -> bool:
    try:
        ours = str(os.getpid()) in (thread / "children").read_text().split()
        return ours and (thread / "comm").read_text().startswith(QUERY_THREAD)
    except OSError:  # the thread has ended
        return False


def _digest(thread: Path) -> str:
    """A digest of machine, container, thread id, and start time of the thread, because thread ids are reused."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text()
    began = (thread / "stat").read_text().rpartition(")")[2].split()[19]
    facts = (boot, str(Path("/proc/self/ns/pid").readlink()), thread.name, began)
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:16]
