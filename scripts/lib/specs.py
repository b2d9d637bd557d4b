"""The command `scripts/specs`: checks the specifications in `specs/` with TLC.

Each model must keep all its invariants. Then each of its rules is switched off by itself, and exactly the invariant of
that name must break: without `lease-end`, `LeaseEnd`. docs/spec.md says what the models have.
"""

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyspark

from broker_jars import ROOT, TLC
from spark_coop_source.servers.java import java, java_version

SHA256 = "fc0a7b69b35076b4aeef54228a62fce9ca035f81a19619f5ed3f023f78c803b3"
SPECS = ROOT / "specs"
ROW = "{:6} {:28} {:>12} {:>12} {:>8}  {}"
_KEPT = "all kept"
_SWITCH = re.compile(r'\bOn\("([a-z-]+)"\)')
_COUNTS = re.compile(r"^(\d+) states generated, (\d+) distinct states found", re.MULTILINE)
_BROKEN = re.compile(r"^Error: (?:Invariant|Action property) (\w+) is violated", re.MULTILINE)
_COMPLETED = "Model checking completed. No error has been found."


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

    @property
    def expected(self) -> str:
        """The result that is right."""
        return invariant_of(self.off) if self.off else _KEPT

    def run(self) -> Outcome:
        """Run TLC in a temporary folder: it writes its states and traces beside the model."""
        with tempfile.TemporaryDirectory(prefix="coop-specs-") as name:
            folder = Path(name)
            shutil.copy(SPECS / f"{self.model}.tla", folder)
            (folder / "checked.cfg").write_text(self.config)
            command = [java(), "-XX:+UseSerialGC", "-Xmx256m", "-cp", str(jar()), "tlc2.TLC", "-nowarning"]
            command += ["-workers", "1", "-metadir", str(folder / "states"), "-config", "checked.cfg"]
            command += [f"{self.model}.tla"]
            ended = subprocess.run(
                command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
            )
        return Outcome.of(ended.stdout + ended.stderr)


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
    return sorted(file.stem for file in SPECS.glob("*.tla"))


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
    promises = {*invariants(config)} - {invariant_of(each) for each in rules}
    lines = [line for line in config.splitlines() if line.strip() not in promises]
    return "\n".join(lines).replace("Off = {}", f'Off = {{"{rule}"}}') + "\n"


def checks(model: str) -> Iterator[Check]:
    """The run of a model with all its rules, then its negative controls."""
    config, rules = (SPECS / f"{model}.cfg").read_text(), switches(model)
    yield Check(model, config)
    yield from (Check(model, without(rule, config, rules), rule) for rule in rules)


def main() -> int:
    """0 if every result is the expected one."""
    parser = argparse.ArgumentParser(prog="scripts/specs", description=__doc__)
    parser.add_argument("--model", choices=models(), help="only this model")
    chosen = parser.parse_args().model
    fetch()
    print(ROW.format("model", "without the rule", "states", "distinct", "seconds", "result"))
    wrong = 0
    for model in [chosen] if chosen else models():
        for check in checks(model):
            began = time.monotonic()
            outcome = check.run()
            right = outcome.result == check.expected
            wrong += not right
            seconds = f"{time.monotonic() - began:.1f}"
            verdict = outcome.result if right else f"{outcome.result} (WRONG: {check.expected} was expected)"
            counts = f"{outcome.states:,}", f"{outcome.distinct:,}"
            print(ROW.format(model, check.off or "-", *counts, seconds, verdict), flush=True)
    print(f"{wrong} wrong" if wrong else "All invariants hold, and each rule is needed for its own.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
