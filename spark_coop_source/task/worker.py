"""What a Python worker is set up with when its first task reads: memory that was used is kept and used again.

Buffers of megabytes come and go with every answer of Kafka. glibc gives each back to the kernel, which clears its pages
before it gives them out again: a quarter of the CPU time of reading, on the machine of docs/benchmarks.md.
Knows the process; nothing of what it reads.
"""

import ctypes
import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

KEPT_BYTES = 32 * 1024 * 1024
"""The largest buffer that malloc takes from memory it has kept, the most that glibc lets it be; twice that is kept."""

# malloc.h
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8


@cache
def settle() -> None:
    """Once in a process, when what a task needs is imported.

    What was imported stays: the garbage collector need not look at it again. Malloc keeps what is freed, and Arrow
    takes its memory from there, unless the user has told them what to do (`MALLOC_...`,
    `ARROW_DEFAULT_MEMORY_POOL`), or it is not glibc's.
    """
    gc.freeze()
    if any(name.startswith("MALLOC_") or name == "ARROW_DEFAULT_MEMORY_POOL" for name in os.environ):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)  # memory of other threads comes from arenas that are always given back
        mallopt(_M_MMAP_THRESHOLD, KEPT_BYTES)
        mallopt(_M_TRIM_THRESHOLD, 2 * KEPT_BYTES)
        import pyarrow as pa  # noqa: PLC0415  # where it is missing, a task says so first

        pa.set_memory_pool(pa.system_memory_pool())


@contextmanager
def without_collection() -> Iterator[None]:
    """Imports make only things that stay: looking for garbage among them takes a sixth of their time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
