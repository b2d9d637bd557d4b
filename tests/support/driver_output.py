"""The driver's host: modules beside the driver, and the driver's output as a user reads it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from pyspark.sql import SparkSession


def beside_the_driver(spark: SparkSession, module: str, source: str) -> None:
    """Write a module where the reader processes of this driver can import it."""
    warehouse = Path(urlsplit(str(spark.conf.get("spark.sql.warehouse.dir"))).path)
    (warehouse.parent / f"{module}.py").write_text(source)


@contextmanager
def driver_output(spark: SparkSession, file: Path) -> Iterator[Path]:
    """Send the driver's standard error to `file`, as a shell does: of what starts in the body of `with`."""
    system = spark._jvm.java.lang.System  # type: ignore[union-attr]
    before = system.err
    system.setErr(spark._jvm.java.io.PrintStream(str(file)))  # type: ignore[union-attr]
    try:
        yield file
    finally:
        system.err.flush()
        system.setErr(before)
