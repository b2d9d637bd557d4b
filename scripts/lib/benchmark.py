"""The command `scripts/bench`: this project beside Spark's own Kafka source, on servers of its own."""

import argparse
import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import psutil

import processes
import temporary
from bench.cases import CASES
from bench.charts import CHARTS
from bench.record import load, written
from bench.table import Result, rows
from bench.world import World
from broker_jars import ROOT
from checkout import commit

QUICK = ("P1", "P9", "trigger")
"""The cases of `--quick` without names; they take a few minutes."""


def arguments() -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        choices=[[], *CASES],
        metavar="NAME",
        help=f"one of {', '.join(CASES)}; default: all",
    )
    parser.add_argument(
        "--quick", action="store_true", help=f"smaller topics, three repetitions; default cases: {', '.join(QUICK)}"
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="also write rows for docs/benchmarks.csv to FILE, after each one"
    )
    parser.add_argument(
        "--charts", action="store_true", help="only draw docs/bench-*.svg from docs/benchmarks.csv; measure nothing"
    )
    return parser.parse_args()


def main() -> int:
    """Run the cases; always returns 0."""
    wanted = arguments()
    if wanted.charts:
        draw(ROOT / "docs")
        return 0
    with (
        processes.ending_politely(),
        tempfile.TemporaryDirectory(prefix="coop-kafka-bench-") as folder,
        temporary.of_children(),  # also of drivers that are killed
    ):
        stack = ExitStack()
        here, at, day = machine(), commit(), f"{datetime.now(UTC):%Y-%m-%d}"
        try:
            names = wanted.names or (QUICK if wanted.quick else CASES)
            results = list[Result]()
            for result in _run(names, World(Path(folder), stack, quick=wanted.quick)):
                results.append(result)
                if wanted.output:  # a run that is cut off leaves the rows before that
                    wanted.output.write_text(written(rows(results, here, at, day)), encoding="utf-8")
        finally:
            with processes.undisturbed():
                stack.close()
    print("", here, "", *(each.line for each in results), sep="\n")
    return 0


def draw(folder: Path) -> None:
    """Draw the charts of docs/benchmarks.md into a folder."""
    record = load()
    for name, chart in CHARTS.items():
        (folder / name).write_text(chart(record), encoding="utf-8")


def _run(names: Iterable[str], world: World) -> Iterator[Result]:
    for name in names:
        began = time.monotonic()
        print(f"{name} ...", flush=True)
        for each in CASES[name](world):
            print(" ", each.line, flush=True)
            yield each
        print(f"  took {time.monotonic() - began:.0f} s", flush=True)


def machine() -> str:
    """Machine and versions of the measurement."""
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr.split('"')[1:2]  # noqa: S607
    parts = [f"{os.cpu_count()} cores", f"{psutil.virtual_memory().total >> 30} GiB"]
    parts += [
        f"{platform.system()} {platform.machine()}",
        f"Python {platform.python_version()}",
        f"Java {' '.join(java)}",
    ]
    parts += [f"{name} {version(name)}" for name in ("pyspark", "kafka-python", "pyarrow", "numpy")]
    return ", ".join(parts) + ", Kafka 4.2.0, spark-sql-kafka 4.2.0"


if __name__ == "__main__":
    raise SystemExit(main())
