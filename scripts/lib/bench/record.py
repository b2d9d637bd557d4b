"""The record of measurements, docs/benchmarks.csv: one figure, or one comparison, a row."""

import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from io import StringIO
from pathlib import Path

from broker_jars import ROOT

RECORD = ROOT / "docs" / "benchmarks.csv"
UNITS = {"ms": 0.001, "s": 1.0, "records/s": 1.0, "%": 1.0, "": 1.0}
QUANTITY = re.compile(r"(\d[\d,]*(?:\.\d+)?)(?: ?(ms|s|records/s|%))?(?=$|[ ;:,)])")


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured, on which machine, at which commit, on which day; empty where nobody wrote it down."""

    id: str
    what: str
    measured: str
    target: str = ""
    verdict: str = ""
    machine: str = ""
    commit: str = ""
    date: str = ""

    @property
    def shown(self) -> str:
        """The first figure of the row with its unit, as it stands there."""
        return self._first[0]

    @property
    def value(self) -> float:
        """The same as a number; a duration in seconds."""
        return float(self._first[1].replace(",", "")) * UNITS[self._first[2] or ""]

    def after(self, word: str) -> float:
        """The figure that follows a word of the row."""
        return float(self.measured.split(word, 1)[1].split()[0].strip(",;()"))

    @property
    def _first(self) -> re.Match[str]:
        found = QUANTITY.search(self.measured)
        if found is None:
            raise ValueError(f"{self.id}, {self.what}: {self.measured!r} has no figure")
        return found


def read(text: str) -> Sequence[Row]:
    """The rows of the record."""
    return [Row(*cells) for cells in list(csv.reader(StringIO(text)))[1:]]


def written(rows: Iterable[Row]) -> str:
    """The text of the record."""
    text = StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerows([[each.name for each in fields(Row)], *map(astuple, rows)])
    return text.getvalue()


def load(path: Path = RECORD) -> Sequence[Row]:
    """The rows of the record of this repository."""
    return read(path.read_text(encoding="utf-8"))


def one(rows: Iterable[Row], id: str, *words: str) -> Row:  # noqa: A002  it is called so in the record
    """The one row of that id whose description has all these words."""
    found = [row for row in rows if row.id == id and all(word in row.what for word in words)]
    if len(found) != 1:
        raise ValueError(f"{len(found)} rows of {id} have {words}")
    return found[0]
