"""Sets up a Python worker at its first task: it keeps freed memory and uses it again.

Each answer of Kafka needs buffers of megabytes. By default glibc returns each to the kernel, which clears the pages
before their next use. That is a quarter of the CPU time of reading, on the machine of docs/benchmarks.md.
Knows the process; nothing of the records.
"""

import ctypes
import gc
import os
from functools import cache

KEPT_BYTES = 32 * 1024 * 1024
"""The largest buffer that malloc takes from kept memory: glibc's maximum. Malloc keeps twice as much."""

# malloc.h
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8


@cache
def settle() -> None:
    """Run once in a process, after the imports of a task.

    Imported objects stay, so the garbage collector need not visit them again. Malloc keeps freed memory, and Arrow uses
    malloc. An exception is another malloc than glibc's, or settings of the user (`MALLOC_...`,
    `ARROW_DEFAULT_MEMORY_POOL`).
    """
    gc.freeze()
    if any(name.startswith("MALLOC_") or name == "ARROW_DEFAULT_MEMORY_POOL" for name in os.environ):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)  # arenas of other threads always return their memory
        mallopt(_M_MMAP_THRESHOLD, KEPT_BYTES)
        mallopt(_M_TRIM_THRESHOLD, 2 * KEPT_BYTES)
        import pyarrow as pa  # noqa: PLC0415  where it is missing, a task has reported so

        pa.set_memory_pool(pa.system_memory_pool())
