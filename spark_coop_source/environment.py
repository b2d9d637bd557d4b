"""Imports what a Spark process needs: names a package that its Python lacks, and imports without garbage collections.

Spark's processes run PYSPARK_PYTHON, or the `python3` on their PATH: drivers, planners and workers may differ.
Imports only the standard library and our errors.
"""

import gc
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
