"""A seeded fault: a mistake that a hurried change could make, the rule that it breaks, and what should catch it."""

from dataclasses import dataclass

from mutants.changes import Change


@dataclass(frozen=True, slots=True)
class Fault:
    """A mistake in the code, and its catcher: a test, or else schedules of the simulation."""

    breaks: str  # a rule of docs/protocol.md, or a heading of docs/guarantees.md, as links name it
    mistake: str
    change: Change
    test: str = ""  # as pytest names it
    schedules: int = 0  # of the simulation

    @property
    def name(self) -> str:
        """The rule and the mistake."""
        return f"{self.breaks}: {self.mistake}"


@dataclass(frozen=True, slots=True)
class Find:
    """The result for a fault: its catcher, empty if there was none."""

    fault: str
    caught_by: str
    seconds: float
