"""The command `scripts/specs`: checks the specifications in `specs/` with TLC.

Each model must keep all its invariants. Then each of its rules is switched off by itself, and the invariant of that
name must break: without `lease-end`, `LeaseEnd`. So must each promise without a rule that it needs. docs/spec.md says
what the models have.

With `--traces N`, it checks recorded schedules of the simulation against models instead. Each of their steps must be a
step of `specs/LeaseTrace.tla` or its like, each action of the model must be among them, and each forgery must be
rejected.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyspark

import schedule_valkey
import traces
from broker_jars import ROOT, TLC
from spark_coop_source.servers.java import java, java_version
from traced.model import Trace, Traced
from traces import Recorded

SHA256 = "fc0a7b69b35076b4aeef54228a62fce9ca035f81a19619f5ed3f023f78c803b3"
SPECS = ROOT / "specs"
ROW = "{:6} {:36} {:>12} {:>12} {:>8}  {}"
_KEPT = "all kept"
NEEDED: Mapping[str, Mapping[str, str]] = {
    "Lease": {"NothingLost": "fence-by-lane-epoch"},
    "Batch": {
        "NothingLost": "unknown-is-beginning",
        "KeyOrder": "unknown-is-beginning",
        "BoundedRepeats": "omit-what-was-skipped",
    },
    "Loss": {"NothingLost": "assert-beginnings"},
}
"""The promises of each model, and a rule without which each breaks."""

_SWITCH = re.compile(r'\bOn\("([a-z-]+)"\)')
_COUNTS = re.compile(r"^(\d+) states generated, (\d+) distinct states found", re.MULTILINE)
_BROKEN = re.compile(r"^Error: (?:Invariant|Action property) (\w+) is violated", re.MULTILINE)
_COMPLETED = "Model checking completed. No error has been found."
_STOPPED = (11, 12, 13)
"""Exit codes of TLC: no step goes on from here; an invariant of states, or of steps, is broken. Others are mistakes."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What TLC says of one model: its states, and the invariant that broke first."""

    states: int
    distinct: int
    result: str  # "all kept", the name of an invariant, or the last lines of an output without a verdict

    @classmethod
    def of(cls, output: str) -> "Outcome":
        """The outcome that an output of TLC states."""
        counts, broken = _COUNTS.findall(output), _BROKEN.search(output)
        states, distinct = map(int, counts[-1]) if counts else (0, 0)
        unclear = "no verdict: " + " | ".join(output.strip().splitlines()[-12:])
        return cls(states, distinct, broken[1] if broken else _KEPT if _COMPLETED in output else unclear)


@dataclass(frozen=True, slots=True)
class Check:
    """One run of TLC, and what it must find."""

    model: str
    config: str
    off: str = ""  # the rule that is switched off
    promise: str = ""  # which then breaks; else the rule's own invariant

    @property
    def expected(self) -> str:
        """The result that is right."""
        return self.promise or (invariant_of(self.off) if self.off else _KEPT)

    def run(self) -> Outcome:
        """Run TLC."""
        ended = run_tlc(self.model, self.config)
        return Outcome.of(ended.stdout + ended.stderr)


def run_tlc(model: str, config: str, recorded: str = "") -> subprocess.CompletedProcess[str]:
    """Run TLC in a temporary folder, as it writes its states beside the model; `recorded`: the module of that name."""
    with tempfile.TemporaryDirectory(prefix="coop-specs-") as name:
        folder = Path(name)
        for file in SPECS.glob("*.tla"):
            shutil.copy(file, folder)
        (folder / "checked.cfg").write_text(config)
        (folder / "Recorded.tla").write_text(recorded)
        command = [java(), "-XX:+UseSerialGC", "-Xmx256m", "-cp", str(jar()), "tlc2.TLC", "-nowarning"]
        command += ["-workers", "1", "-metadir", str(folder / "states"), "-config", "checked.cfg", f"{model}.tla"]
        # Tests give JVMs options for short lives, with one compiler.
        environment = {name: value for name, value in os.environ.items() if name != "JDK_JAVA_OPTIONS"}
        return subprocess.run(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )


def jar() -> Path:
    """The jar of TLC, with the pinned checksum."""
    (found,) = TLC.jars
    digest = hashlib.sha256(found.read_bytes()).hexdigest()
    if digest != SHA256:
        raise RuntimeError(f"{found} has the checksum {digest}, not {SHA256}: delete {found.parent}, and start again")
    return found


def fetch() -> None:
    """Fetch TLC, unless it is there; raises `EnvironmentMismatchError` without Java."""
    java_version()
    if not TLC.present():
        print(f"Fetching {TLC.what} into .cache ...", file=sys.stderr)
        TLC.fetch(Path(pyspark.__file__).parent)


def models() -> list[str]:
    """The names of the models."""
    return sorted(file.stem for file in SPECS.glob("*.tla") if not file.stem.endswith("Trace"))


def switches(model: str) -> list[str]:
    """The rules that a model can switch off, in its order."""
    return list(dict.fromkeys(_SWITCH.findall((SPECS / f"{model}.tla").read_text())))


def invariant_of(rule: str) -> str:
    """The name of the invariant of a rule: `lease-end` -> `LeaseEnd`."""
    return "".join(word.capitalize() for word in rule.split("-"))


def invariants(config: str) -> list[str]:
    """The invariants that a configuration names, also those of steps; but for the types of the variables."""
    named = re.findall(r"^    (\w+)$", config.partition("\nINVARIANTS\n")[2], re.MULTILINE)
    return [name for name in named if name != "TypeOK"]


def without(rule: str, config: str, rules: list[str]) -> str:
    """The configuration of a negative control: without the rule, and without promises, which follow from rules."""
    return _checking({invariant_of(each) for each in rules}, rule, config)


def _checking(wanted: set[str], rule: str, config: str) -> str:
    left_out = {*invariants(config)} - wanted
    if not wanted & {*config.partition("\nPROPERTIES\n")[2].split()}:
        left_out.add("PROPERTIES")
    lines = [line for line in config.splitlines() if line.strip() not in left_out]
    return "\n".join(lines).replace("Off = {}", f'Off = {{"{rule}"}}') + "\n"


def checks(model: str) -> Iterator[Check]:
    """The run of a model with all its rules, then its negative controls: of each rule, and of each promise."""
    config, rules = (SPECS / f"{model}.cfg").read_text(), switches(model)
    yield Check(model, config)
    yield from (Check(model, without(rule, config, rules), rule) for rule in rules)
    for promise, rule in NEEDED[model].items():
        yield Check(model, _checking({promise}, rule, config), rule, promise)


# -- recorded schedules ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stop:
    """Where TLC found that a recorded schedule is none of the model."""

    trace: Trace
    step: int

    def __str__(self) -> str:
        shown = self.trace.steps[max(0, self.step - 3) : self.step + 1]
        return f"seed {self.trace.seed}, step {self.step} is none of the model, after these:\n  " + "\n  ".join(
            map(str, shown)
        )


def replay(model: Traced, recorded: Sequence[Trace]) -> Stop | None:
    """Replay traces with as many lanes each; the first step that is none of the model. Raises if TLC has no verdict."""
    name = f"{model.name}Trace"
    ended = run_tlc(name, (SPECS / f"{name}.cfg").read_text(), traces.module(model, recorded))
    if ended.returncode == 0:
        return None
    at = traces.stopped_at(ended.stdout)
    if at is None or ended.returncode not in _STOPPED:
        raise RuntimeError(Outcome.of(ended.stdout + ended.stderr).result)
    return Stop(recorded[at[0]], at[1])


def record(model: Traced, seeds: range) -> list[Recorded]:
    """Record the schedules of these seeds."""
    with schedule_valkey.of_command() as valkey:
        return [traces.record(valkey, model, seed) for seed in seeds]


def check_traces(model: Traced, seeds: range) -> Iterator[str]:
    """Check the schedules of these seeds, and print what they had; yields what is wrong."""
    began = time.monotonic()
    schedules = record(model, seeds)
    yield from traces.mistakes(schedules)
    recorded = [trace for each in schedules for trace in each.traces]
    steps, left_out = sum(len(t.steps) for t in recorded), sum(each.repeats for each in schedules)
    print(
        f"{model.name}: {len(seeds)} schedules from seed {seeds.start}, {len(recorded)} records, {steps:,} steps",
        end="",
    )
    print(f", {left_out:,} repeated ones left out" if left_out else "")
    print(f"recorded in {time.monotonic() - began:.0f} s")
    began, found = time.monotonic(), traces.counts(recorded)
    yield from (str(stop) for group in traces.by_lanes(recorded) if (stop := replay(model, group)))
    print(f"replayed in {time.monotonic() - began:.0f} s")
    _show("steps", found)
    _show("not in the model", sum((Counter(each.beside) for each in schedules), Counter()))
    _show("records that end before their schedule", Counter(why for each in schedules for why in each.ends_at))
    yield from (f"too few schedules: none has the action {action!r}" for action in model.actions if not found[action])
    for rule in model.forgeries:
        if (forged := traces.forgery(model, rule, recorded)) is None:
            yield f"too few schedules: none gives an occasion to break {rule}"
        elif (stop := replay(model, [forged])) is None or stop.step != len(forged.steps) - 1:
            yield f"a schedule that breaks {rule} is not rejected where it does: {stop or forged.steps[-2:]}"
        else:
            print(f"without {rule}: rejected at step {stop.step} of seed {forged.seed}", flush=True)


def _show(what: str, found: Counter[str]) -> None:
    print(f"{what}: {', '.join(f'{count:,} {name}' for name, count in found.most_common()) or 'none'}")


def main() -> int:
    """0 if every result is the expected one."""
    parser = argparse.ArgumentParser(prog="scripts/specs", description=__doc__)
    parser.add_argument("--model", choices=models(), help="only this model")
    parser.add_argument("--traces", type=int, metavar="N", help="check N recorded schedules instead")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="the first seed of these (default 0)")
    wanted = parser.parse_args()
    fetch()
    if wanted.traces:
        chosen = [traces.MODELS[name] for name in ([wanted.model] if wanted.model else traces.MODELS)]
        seeds = range(wanted.seed, wanted.seed + wanted.traces)
        mistakes = [f"{each.name}: {wrong}" for each in chosen for wrong in check_traces(each, seeds)]
        print("\n".join(mistakes) or "All schedules are of their models, and each forgery is rejected.")
        return 1 if mistakes else 0
    return check_models([wanted.model] if wanted.model else models())


def check_models(chosen: Sequence[str]) -> int:
    """Check models with all their rules, and with each of them switched off; 0 if every result is the expected one."""
    print(ROW.format("model", "without the rule", "states", "distinct", "seconds", "result"))
    wrong = 0
    for model in chosen:
        for check in checks(model):
            began = time.monotonic()
            outcome = check.run()
            right = outcome.result == check.expected
            wrong += not right
            seconds = f"{time.monotonic() - began:.1f}"
            verdict = outcome.result if right else f"{outcome.result} (WRONG: {check.expected} was expected)"
            counts = f"{outcome.states:,}", f"{outcome.distinct:,}"
            off = f"{check.off}, {check.promise}" if check.promise else check.off or "-"
            print(ROW.format(model, off, *counts, seconds, verdict), flush=True)
    all_hold = "All invariants hold; each rule is needed for its own, and some rule for each promise."
    print(f"{wrong} wrong" if wrong else all_hold)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
