"""The command `scripts/fuzz`: gives decoders and parsers inputs that reach ever more of their code.

Atheris changes known inputs, and keeps those that reach new code of ours. `tests/support/fuzz_targets.py` has the
targets, and what must hold for any bytes. A crash, a result that is not sound, an input that takes 20 s, or 6 GB ends a
target, and the input stays in `.cache/fuzz`. Atheris itself grows by some GB in an hour.
"""

import argparse
import importlib
import logging
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import extra_packages
import processes
from broker_jars import CACHE, ROOT

ATHERIS = "atheris==3.0.0"
ROW = "{:18} {:>10} {:>10} {:>8} {:>9}  {}"
NAMES = (
    *("record-batches", "offsets", "groups", "texts", "mirror"),
    *("parallel-consumer", "share-group", "spark-checkpoint"),
)
_SUPPORT = ROOT / "tests" / "support"
_FOLDER = CACHE / "fuzz"
_LIMITS = ("-timeout=20", "-rss_limit_mb=6144", "-max_len=8192", "-print_final_stats=1")
_RUNS = re.compile(r"^#(\d+)\s.*cov: (\d+)", re.MULTILINE)
_WRONG = re.compile(r"^ *=== Uncaught Python exception: ===\n(.*)|^==\d+== ERROR: (.*)", re.MULTILINE)
_KEPT = re.compile(r"Test unit written to (\S+-(?:crash|timeout|oom)-\S+)")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one target did in its time."""

    name: str
    runs: int
    taken: int  # inputs that it took, and did not refuse by name
    covered: int  # branches of our code
    seconds: float  # of processor
    wrong: str  # empty if every input was taken or refused by name

    @classmethod
    def of(cls, name: str, output: str, taken: int, seconds: float, code: int = 0) -> "Outcome":
        """The outcome that an output of atheris and its exit code state."""
        counts, wrong, kept = _RUNS.findall(output), _WRONG.search(output), _KEPT.findall(output)
        runs, covered = map(int, counts[-1]) if counts else (0, 0)
        what = (wrong[1] or wrong[2] or "").strip() if wrong else "" if counts else output.strip()[-300:] or "no output"
        what = what or (f"it ended with code {code}" if code else "")  # a kill by the kernel leaves no word
        what = what or ("" if taken else "not one input was taken")
        return cls(name, runs, taken, covered, seconds, f"{what} {' '.join(kept)}".strip())

    def __str__(self) -> str:
        figures = f"{self.runs:,}", f"{self.taken:,}", f"{self.covered:,}", f"{self.seconds:.0f}"
        return ROW.format(self.name, *figures, self.wrong or "each taken, or refused by name")


def fuzz(name: str, seconds: int, seed: int) -> None:
    """Fuzz one target in this process, which ends with it."""
    atheris = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["coordinator", "spark_coop_source"]):
        import fuzz_targets  # noqa: PLC0415

    logging.disable(logging.CRITICAL)
    target, corpus = fuzz_targets.TARGETS[name], _FOLDER / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(target.seeds()):
        (corpus / f"seed-{number}").write_bytes(data)
    with target.opened() as check:
        taken, shown, wrong = 0, 0.0, _FOLDER / f"{name}-crash-last"

        def one(data: bytes) -> None:
            nonlocal taken, shown
            try:
                taken += check(data)
            except Exception:
                wrong.write_bytes(data)  # atheris does not always
                print(f"Test unit written to {wrong}", flush=True)
                raise
            if (now := time.monotonic()) > shown + 1:  # atheris ends the process without a last word
                (_FOLDER / f"{name}.taken").write_text(str(taken))
                shown = now

        kept = (f"-seed={seed}", f"-artifact_prefix={corpus}-", str(corpus))
        atheris.Setup([name, f"-max_total_time={seconds}", *_LIMITS, *kept], one)
        atheris.Fuzz()


def run(names: Sequence[str], seconds: int, seed: int) -> Iterator[Outcome]:
    """Fuzz targets at once, each in a process of its own."""
    if (atheris := extra_packages.folder_of(ATHERIS)) is None:
        sys.exit("pip could not install atheris; its message is above. It has wheels for Linux on x86-64.")
    path = os.pathsep.join(map(str, (ROOT, ROOT / "scripts" / "lib", _SUPPORT, atheris)))
    with ExitStack() as running:
        scratch = running.enter_context(tempfile.TemporaryDirectory(prefix="coop-kafka-fuzz-"))
        environment = {"PYTHONPATH": path, "TMPDIR": scratch}
        started = []
        for name in names:
            (_FOLDER / f"{name}.taken").write_text("0")
            command = [sys.executable, "-B", __file__, name, "--seconds", str(seconds), "--seed", str(seed), "--here"]
            log = _FOLDER / f"{name}.log"
            log.unlink(missing_ok=True)
            process = processes.start(command, log, environment=environment)
            running.callback(processes.stop, process)  # and its Valkey: atheris ends without any `finally`
            started.append((name, process, log))
        for name, process, log in started:
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            taken = int((_FOLDER / f"{name}.taken").read_text())
            output, cpu_s = log.read_text(errors="replace"), used.ru_utime + used.ru_stime
            yield Outcome.of(name, output, taken, cpu_s, process.returncode)


def main() -> int:
    """0 if each target took each input, or refused it by name."""
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"only these: {', '.join(NAMES)}")
    parser.add_argument("--seconds", type=int, default=60, metavar="N", help="for each, all at once (default 60)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of the changes (default 1)")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if not __debug__:
        parser.error("the checks are assertions, which PYTHONOPTIMIZE leaves out: unset it")
    if unknown := {*wanted.targets} - {*NAMES}:
        parser.error(f"unknown target {min(unknown)!r}: choose from {', '.join(NAMES)}")
    if wanted.here:
        fuzz(wanted.targets[0], wanted.seconds, wanted.seed)
        return 0
    _FOLDER.mkdir(parents=True, exist_ok=True)
    print(ROW.format("target", "inputs", "taken", "branches", "cpu s", "result"), flush=True)
    wrong = 0
    with processes.ending_politely():
        for outcome in run(wanted.targets or NAMES, wanted.seconds, wanted.seed):
            wrong += bool(outcome.wrong)
            print(outcome, flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
