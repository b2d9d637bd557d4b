"""What a model of `specs/` needs so that recorded schedules can be checked against it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from simulation.recorder import Recorder, Step

MOST_OFFSETS = 1_000

Forged = list[Step] | None
"""The last steps of a forgery; None where a step gives no occasion."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A record: of a whole schedule, or of the part of it that the model sees by itself."""

    seed: int
    lanes: int
    steps: tuple[Step, ...]


class Before(Protocol):
    """What a record has shown before a step."""

    def after(self, step: Step) -> None:
        """Take a step into account."""


@dataclass(frozen=True, slots=True)
class Traced:
    """A model, and its replay: `specs/<name>Trace.tla`."""

    name: str
    recorder: type[Recorder]
    actions: tuple[str, ...]  # those of the model: the schedules must have each of them
    constants: Callable[[Sequence[Trace]], Iterable[str]]  # definitions in `Recorded.tla`
    forms: Mapping[str, Callable[[Any], str]]  # how the fields of a step are written, where `tla` does not do
    before: Callable[[int], Before]  # the first step, of so many lanes
    forgeries: Mapping[str, Callable[[Step, Any], Forged]]  # by the rule that each breaks


def tla(value: object) -> str:
    """A value of a step as TLA+."""
    match value:
        case bool():
            return str(value).upper()
        case str():
            return f'"{value}"'
        case tuple():
            return f"<<{', '.join(map(tla, value))}>>"
        case set() | frozenset():
            return f"{{{', '.join(map(tla, sorted(value)))}}}"
        case _:
            return str(value)
