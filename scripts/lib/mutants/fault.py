"""A seeded fault: a mistake that a hurried change could make, and the tests that should catch it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """One place of one file; the file contains `old` exactly once, or the fault is out of date."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Fault:
    """A mistake in the code, as edits, and its catchers: first the tests, then the simulation."""

    name: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...] = ()  # as pytest names them
    schedules: int = 0  # of the simulation


@dataclass(frozen=True, slots=True)
class Find:
    """The result for a fault: its catcher, empty if there was none."""

    fault: str
    caught_by: str
    seconds: float
