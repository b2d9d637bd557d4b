"""The Python of a Spark process: names a package or memory that it lacks, and the trap of PYSPARK_DRIVER_PYTHON.

Imports without garbage collections. Tells Spark how to show our errors. Spark's processes run PYSPARK_PYTHON, or the
`python3` on their PATH: drivers, planners and workers may differ. Imports only the standard library and our errors.
"""

import gc
import os
import resource
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from coordinator.errors import CoopKafkaError, EnvironmentMismatchError

_NO_THREAD = "can't start new thread"


@contextmanager
def needed_packages() -> Iterator[None]:
    """Turn an ImportError inside into an `EnvironmentMismatchError` that names interpreter and remedy.

    Pauses the garbage collector: imports make no garbage, and it takes a seventh of their time.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    except ImportError as missing:
        raise EnvironmentMismatchError(
            f"a Spark process cannot import what coop-kafka needs ({missing}); its Python is {sys.executable}",
            "install coop-kafka with its dependencies where driver and executors run,"
            " and set PYSPARK_PYTHON to that Python",
        ) from missing
    finally:
        if collects:
            gc.enable()


@contextmanager
def enough_memory() -> Iterator[None]:
    """Turn a lack of memory, or of threads, inside into an `EnvironmentMismatchError` that names the option.

    Python has no class of errors for a thread that the system refuses, and threads are refused first: each reserves
    megabytes of addresses for its stack.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and _NO_THREAD not in str(error):
            raise
        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        raise EnvironmentMismatchError(
            f"a Python worker got no more memory or threads ({error or type(error).__name__}); its limit is "
            + ("that of its host or container" if limit == resource.RLIM_INFINITY else f"{limit >> 20} MiB"),
            "raise spark.executor.pyspark.memory, which Spark divides by the cores of an executor, to 1g for each core,"
            " or do not set it; then raise the limits of the container for memory and processes",
        ) from error


@contextmanager
def errors_in_one_line() -> Iterator[None]:
    """Let Spark show an error of ours as its one line, without the frames of this process.

    Other errors keep their frames, and so does one with a cause, such as an exception of the user's assignor.
    Spark looks at the variable when it writes the error with which the reader process of a stream ends. A planner of
    `spark.read` serves other queries afterwards, so this is not for it. A user who sets the variable to nothing sees
    all frames.
    """
    try:
        yield
    except CoopKafkaError as error:
        if error.__cause__ is None:
            os.environ.setdefault("SPARK_HIDE_TRACEBACK", "1")
        raise


def interpreter_notices() -> Iterator[str]:
    """A warning if Spark starts the tasks with the driver's interpreter. Runs in the process that plans, on the driver.

    Spark ships PYSPARK_DRIVER_PYTHON to executors with a source that it finds by itself, whatever PYSPARK_PYTHON is.
    """
    drivers, executors = os.environ.get("PYSPARK_DRIVER_PYTHON"), os.environ.get("PYSPARK_PYTHON")
    if drivers and executors and drivers != executors and _is_this(drivers):
        yield (
            f"executors run this source with PYSPARK_DRIVER_PYTHON={drivers} and not with PYSPARK_PYTHON={executors}: "
            "a host without that interpreter fails. Remedy: unset PYSPARK_DRIVER_PYTHON, and set PYSPARK_PYTHON to a "
            "path that driver and executors have."
        )


def _is_this(interpreter: str) -> bool:
    found = shutil.which(interpreter)
    return found is not None and os.path.abspath(found) == sys.executable  # noqa: PTH100  `resolve` follows links
