"""The command `scripts/matrix`: runs some of the tests on each version of Kafka, Redis, Spark and Python.

Each cell differs in one part from this checkout's environment: another broker from Maven, another Redis, or a fresh
virtual environment. Its tests are the rules of the protocol, the clients of Kafka, and whole Spark queries.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyspark

import capped_versions
import processes
import servers
from broker_jars import BROKER, CACHE, ROOT
from checkout import sources
from coordinator.errors import EnvironmentMismatchError
from spark_coop_source.servers.java import JarSet

TESTS = (
    *("tests/rules", "tests/coordinator/kafka/test_log.py", "tests/spark_coop_source/task/test_read_paths.py"),
    "tests/end_to_end/test_streaming_queries.py",
)
_OF_IDS = tuple(
    f"--deselect=tests/coordinator/kafka/test_log.py::{name}"
    for name in (
        "test_topics_by_name_have_their_id_and_partitions",
        "test_a_recreated_topic_has_another_id_at_once_and_its_own_bounds",
    )
)
"""What a broker without topic ids cannot do."""

KAFKAS = ("3.7.2", "3.9.1", "4.0.1", "4.1.1", "4.2.0")
PYTHONS = ("3.11", "3.12", "3.13")
SPARKS = ("4.2.0", "4.3.0")
NEXT_CLIENT = "kafka-python>=3.1"
"""The first version that setup.cfg does not allow."""

ROW = "| {:26} | {:>6} | {:>6} | {:>7} | {:>7} | {}"
_BEFORE_4_1 = ("group.coordinator.rebalance.protocols=classic",)  # the one that all versions know
_EXTRAS = "spark,cli,exporter,metrics,ui,testing,demo,test"
_NOT_INHERITED = ("SPARK_SUBMIT_OPTS", "PYTHONPATH", "VIRTUAL_ENV", "COOP_KAFKA", "COOP_REDIS")
_SUMMARY = re.compile(r"^=* ?((?:\d+ \w+, )*\d+ \w+) in [\d.]+s", re.MULTILINE)
_COUNT = re.compile(r"(\d+) (passed|failed|error|skipped)")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


class MissingPartError(Exception):
    """This machine or the registries lack what a cell needs."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the tests of one cell did."""

    passed: int
    failed: tuple[str, ...]
    skipped: int
    missing: str = ""  # what this machine lacks for the cell
    words: str = ""  # the last ones of a run without a result

    @classmethod
    def of(cls, output: str, code: int) -> "Outcome":
        """The outcome that an output of pytest and its exit code state."""
        counts = {word: int(number) for number, word in _COUNT.findall("".join(_SUMMARY.findall(output)[-1:]))}
        failed = tuple(_FAILED.findall(output))
        words = f"pytest ended with code {code}: {_end(output)}" if not counts or (code and not failed) else ""
        return cls(counts.get("passed", 0), failed, counts.get("skipped", 0), words=words)

    @property
    def right(self) -> bool:
        """Whether the cell holds, or cannot be tried here."""
        return bool(self.missing) or (self.passed > self.skipped and not self.failed and not self.words)


def _end(text: str) -> str:
    return " ".join(text.split())[-400:]


Cell = Callable[[Path, ExitStack], Outcome]
"""Runs in a folder of its own; the stack ends what it starts."""


def cells() -> dict[str, Cell]:
    """The cells by name."""
    return {
        **{f"kafka-{version}": partial(_on_kafka, version) for version in KAFKAS},
        "kafka-without-topic-ids": _without_topic_ids,
        "redis-6.2": partial(_on_redis, servers.REDIS_6, servers.NO_REDIS_6),
        "redis-7": partial(_on_redis, servers.REDIS_SERVER, servers.NO_REDIS_SERVER),
        "valkey-9": _on_valkey,
        **{f"python-{version}": partial(_on_python, version, "") for version in PYTHONS},
        **{f"spark-{version}": partial(_on_python, "3.11", f"pyspark[pipelines,sql]=={version}") for version in SPARKS},
        "kafka-python-next": _on_next_client,
    }


def _tests(folder: Path, python: str | Path, environment: Mapping[str, str], *more: str) -> Outcome:
    command = [python, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not long", *TESTS, *more]
    log = folder / "pytest.log"
    process = processes.start(command, log, folder=ROOT, environment=environment)
    try:
        code = process.wait()
    finally:
        processes.stop(process)  # after Ctrl-C it stops its servers, and removes its folders
    return Outcome.of(log.read_text(errors="replace"), code)


# -- Kafka -------------------------------------------------------------------------------------


def _jars(version: str) -> JarSet:
    """The jars of a broker of this version; they stay in `.cache`."""
    wanted = CACHE / f"kafka-{version}.xml"
    wanted.write_text(BROKER.wanted.read_text().replace('rev="4.2.0"', f'rev="{version}"'))
    found = JarSet(CACHE / f"kafka-{version}-matrix", wanted, f"Kafka {version}")
    if not found.present():
        try:
            found.fetch(Path(pyspark.__file__).parent)
        except RuntimeError as error:
            raise MissingPartError(f"Kafka {version} could not be fetched: {error}") from None
    return found


def _on_kafka(version: str, folder: Path, stack: ExitStack) -> Outcome:
    more = _BEFORE_4_1 if version < "4.1" else ()
    broker = servers.tried(lambda: servers.start_broker(folder, more=more, jars=_jars(version)))
    stack.callback(broker.stop)
    return _tests(folder, sys.executable, {"COOP_KAFKA": broker.address})


def _without_topic_ids(folder: Path, stack: ExitStack) -> Outcome:
    broker = stack.enter_context(capped_versions.broker(folder))
    return _tests(folder, sys.executable, {"COOP_KAFKA": broker}, *_OF_IDS)


# -- Redis -------------------------------------------------------------------------------------


def _on_redis(program: Path | str | None, missing: str, folder: Path, stack: ExitStack) -> Outcome:
    if not program:
        raise MissingPartError(missing)
    (port,) = servers.free_ports(1)
    url = f"redis://{servers.HOST}:{port}/0"
    settings = ("--port", str(port), "--bind", servers.HOST)
    stack.enter_context(servers.redis_running(program, settings, folder, url))
    return _tests(folder, sys.executable, {"COOP_REDIS": url})


def _on_valkey(folder: Path, stack: ExitStack) -> Outcome:
    server = servers.tried(lambda: servers.start_valkey(folder, servers.free_ports(1)[0]))
    stack.callback(server.stop)
    return _tests(folder, sys.executable, {"COOP_REDIS": server.address})


# -- Python and its packages -------------------------------------------------------------------


def _on_python(version: str, more: str, folder: Path, stack: ExitStack) -> Outcome:
    return _in(folder, _environment(version, (more,) if more else (), folder))


def _on_next_client(folder: Path, stack: ExitStack) -> Outcome:
    python = _environment("3.11", (), folder)
    _install(folder, python, "--pre", "--no-deps", NEXT_CLIENT)
    return _in(folder, python)


def _environment(version: str, more: Iterable[str], folder: Path) -> Path:
    """The interpreter of a fresh virtual environment with this project, at the newest versions that it allows."""
    name = f"python{version}"
    if (
        not shutil.which(name)
        or subprocess.run([name, "-c", "import venv"], capture_output=True, check=False).returncode
    ):
        raise MissingPartError(f"no {name} on this host's PATH")
    subprocess.run([name, "-m", "venv", folder / "venv"], check=True)
    python, copy = folder / "venv" / "bin" / "python", sources(folder / "copy")
    _install(folder, python, f"{copy}[{_EXTRAS}]", *more)
    return python


def _install(folder: Path, python: Path, *wanted: str) -> None:
    """Install with pip; `MissingPartError` if no registry has it."""
    command: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted]
    environment = os.environ | {"TMPDIR": str(folder)}
    ended = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if ended.returncode:
        missing = "No matching distribution" in ended.stderr
        raise (MissingPartError if missing else RuntimeError)(f"pip could not install it: {_end(ended.stderr)}")


def variables(python: Path) -> dict[str, str]:
    """The environment variables of the tests in a virtual environment: its Python and its Spark."""
    home = next(python.parent.parent.glob("lib/python3*/site-packages/pyspark"), Path("pyspark-is-missing"))
    path = f"{python.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    ours = dict.fromkeys(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"), str(python))
    return dict.fromkeys(_NOT_INHERITED, "") | ours | {"PATH": path, "SPARK_HOME": str(home)}


def _in(folder: Path, python: Path) -> Outcome:
    return _tests(folder, python, variables(python))


# -- the command -------------------------------------------------------------------------------


def run(names: Iterable[str]) -> Iterator[tuple[str, Outcome, float]]:
    """Each cell with its outcome and its minutes."""
    known = cells()
    for name in names:
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="coop-kafka-matrix-") as folder, ExitStack() as stack:
            try:
                outcome = known[name](Path(folder), stack)
            except MissingPartError as missing:
                outcome = Outcome(0, (), 0, str(missing))
            except (RuntimeError, EnvironmentMismatchError, subprocess.SubprocessError) as error:  # it did not start
                outcome = Outcome(0, (), 0, words=_end(str(error)))
        yield name, outcome, (time.monotonic() - began) / 60


def main() -> int:
    """0 if all tests of each cell pass that this machine can try, and there is one."""
    parser = argparse.ArgumentParser(prog="scripts/matrix", description=__doc__)
    parser.add_argument("cells", nargs="*", metavar="CELL", help=f"only these: {', '.join(cells())}")
    wanted = parser.parse_args().cells or [*cells()]
    if unknown := {*wanted} - cells().keys():
        parser.error(f"unknown cell {min(unknown)!r}: choose from {', '.join(cells())}")
    print(ROW.format("cell", "passed", "failed", "skipped", "minutes", "result |"), flush=True)
    print("|---|---|---|---|---|---|", flush=True)
    wrong = tried = 0
    with processes.ending_politely():
        for name, outcome, minutes in run(wanted):
            wrong += not outcome.right
            tried += not outcome.missing
            result = outcome.missing or outcome.words or ", ".join(outcome.failed) or "holds"
            counts = outcome.passed, len(outcome.failed), outcome.skipped, f"{minutes:.1f}"
            print(ROW.format(name, *counts, f"{result} |"), flush=True)
    print(f"{tried} of {len(wanted)} cells tried, {tried - wrong} of them hold")
    return 0 if tried and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
