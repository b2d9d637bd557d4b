"""The results of a run, as lines for a terminal and as a table for docs/benchmarks.md. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.runner import Pair, seconds

HEAD = ("id", "work", "against", "ours", "theirs", "ratio", "aim", "met")


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


def markdown(results: Iterable[Result]) -> str:
    """The table of docs/benchmarks.md."""
    rows = [HEAD, ("---",) * len(HEAD), *(_cells(each) for each in results)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cells(each: Result) -> Sequence[str]:
    ratio = "" if each.ratio is None else _number(each.ratio) + (f" ({each.note})" if each.note else "")
    aim = "" if each.aim is None else f"<= {_number(each.aim)}"
    ours = f"{each.ours} ({each.note})" if each.ratio is None and each.note else each.ours
    return each.id, each.work, each.against, ours, each.theirs, ratio, aim, each.met


def _number(value: float) -> str:
    return f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"
