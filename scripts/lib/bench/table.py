"""The results of a run, as lines for a terminal and as rows for docs/benchmarks.csv. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bench.record import Row
from bench.runner import Pair, seconds


@dataclass(frozen=True, slots=True)
class Result:
    """One line: a figure of ours and its reference."""

    id: str
    work: str
    against: str
    ours: str
    theirs: str
    ratio: float | None = None  # None: a figure without a reference
    aim: float | None = None  # the largest wanted ratio; None: only shown
    note: str = ""

    @property
    def met(self) -> str:
        """Whether the aim is reached, as a word; empty without an aim."""
        if self.ratio is None or self.aim is None:
            return ""
        return "met" if self.ratio <= self.aim else "not met"

    @property
    def line(self) -> str:
        """For a terminal: id, ours, theirs, ratio, aim, met or not."""
        parts = [f"{self.id:<11}", f"ours {self.ours:<10}"]
        parts += [f"theirs {self.theirs:<10}"] if self.theirs else []
        parts += [f"ratio {_number(self.ratio)}"] if self.ratio is not None else []
        parts += [f"aim <= {_number(self.aim)}", self.met] if self.aim is not None else []
        parts += [f"({self.work}; against {self.against})" if self.against else f"({self.work})"]
        parts += [self.note] if self.note else []
        return "  ".join(parts)


def result(
    id: str,  # noqa: A002  it is called so in the table
    work: str,
    against: str,
    pair: Pair,
    aim: float | None,
) -> Result:
    """The line of two ways that alternated."""
    low, high = pair.spread
    cpu = "" if pair.cpu_ratio is None else f", CPU {pair.cpu_ratio:.2f}"
    note = f"runs {low:.2f}-{high:.2f}{cpu}"
    ours, theirs = (duration(seconds(side)) for side in (pair.ours, pair.theirs))
    return Result(id, work, against, ours, theirs, pair.ratio, aim, note)


def duration(value: float) -> str:
    """Seconds with three digits, in a fitting unit."""
    return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.3g} s" if value < 1000 else f"{value:.0f} s"


def rows(results: Iterable[Result], machine: str, commit: str, date: str) -> Iterator[Row]:
    """The rows of docs/benchmarks.csv."""
    for each in results:
        what = f"{each.work}; against {each.against}" if each.against else each.work
        sides = f"{each.ours} against {each.theirs}" if each.theirs else each.ours
        ratio = "" if each.ratio is None else f": {_number(each.ratio)}"
        note = f" ({each.note})" if each.note else ""
        target = "" if each.aim is None else f"<= {_number(each.aim)}"
        measured = f"{sides}{ratio}{note}"
        yield Row(each.id, what.replace("`", ""), measured, target, each.met, machine, commit, date)


def _number(value: float) -> str:
    return f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"
