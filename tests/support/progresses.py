"""A `Progress` as a model of what scripts write: additions one by one, in the fewest segments."""

from coordinator.progress.segments import Progress, Rectangle, Segment
from coordinator.values.ranges import WHOLE, HashRange


def starting_at(position: int, hashes: HashRange = WHOLE) -> Progress:
    """One segment over `hashes`, done up to `position`."""
    return Progress((Segment(hashes, position),))


def added(progress: Progress, done: Rectangle) -> Progress:
    """The progress with everything in `done` done as well."""
    return progress.add_all([(done.hashes, (done.offsets,))])


def positions_text(progress: Progress) -> dict[str, str]:
    """The positions in the form of Redis: `lo-hi` -> next offset to read."""
    return {str(s.hashes): str(s.position) for s in progress.segments}


def ics_text(progress: Progress) -> dict[str, str]:
    """The ICs in the form of Redis: `lo-hi` -> inclusive ranges, `53-60 71-71`. Segments without ICs are left out."""
    return {str(s.hashes): " ".join(map(str, s.ics)) for s in progress.segments if s.ics}
