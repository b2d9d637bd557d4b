"""The Python of a Spark process: names a package that it lacks, and the trap of PYSPARK_DRIVER_PYTHON.

Imports without garbage collections. Spark's processes run PYSPARK_PYTHON, or the `python3` on their PATH: drivers,
planners and workers may differ. Imports only the standard library and our errors.
"""

import gc
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from coordinator.errors import EnvironmentMismatchError


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
