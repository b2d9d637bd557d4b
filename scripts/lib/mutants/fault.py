"""A seeded fault: what a hurried change could have broken, and who should notice."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """One place of one file; `old` stands there exactly once, or the fault is out of date."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Fault:
    """A mistake in the code, as edits, and the tests that are asked about it: first the tests, then the simulation."""

    name: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...] = ()  # as pytest names them
    schedules: int = 0  # of the simulation


@dataclass(frozen=True, slots=True)
class Find:
    """How a fault was met: what caught it, empty if nothing did."""

    fault: str
    caught_by: str
    seconds: float
