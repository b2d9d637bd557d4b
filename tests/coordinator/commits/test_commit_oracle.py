"""The scripts that commit, on a real Redis, against their oracle: the set of done (offset, hash) points.

Offsets lie around 2^53, where a double cannot distinguish neighbours, and around a power of ten.
"""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.commits.commit_api import CommitApi
from coordinator.errors import IndividualCommitTooOldError
from coordinator.progress.ownership import Fact, Facts, Owned
from coordinator.progress.segments import Progress
from coordinator.values.ranges import HASH_MAX, HashRange, OffsetRange, union
from progresses import ics_text, positions_text
from store_world import BIG, TP, WANTED, StoreServer, World, offset

ON_EACH_SERVER = True

SPAN, CELLS = 12, 6
BOUNDS = [0, 1, 2, HASH_MAX // 2, HASH_MAX - 1, HASH_MAX, HASH_MAX + 1]
Points = set[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happens: to the cells [first, last], and to offsets from the base."""

    kind: str
    first: int
    last: int
    offsets: tuple[tuple[int, int], ...]

    @property
    def hashes(self) -> HashRange:
        return HashRange(BOUNDS[self.first], BOUNDS[self.last + 1] - 1)

    def ranges(self, base: int) -> list[OffsetRange]:
        return [OffsetRange(base + start, base + end + 1) for start, end in self.offsets]

    @property
    def points(self) -> Points:
        cells = range(self.first, self.last + 1)
        return {(o, c) for start, end in self.offsets for o in range(start, end + 1) for c in cells}


def pair(most: int, longest: int) -> st.SearchStrategy[tuple[int, int]]:
    return st.tuples(st.integers(0, most), st.integers(0, longest)).map(lambda p: (p[0], min(most, p[0] + p[1])))


steps = st.builds(
    lambda kind, cells, offsets: Step(kind, cells[0], cells[1], tuple(offsets)),
    st.sampled_from(("api", "api", "api", "source", "assertion", "acquired", "deleted")),
    pair(CELLS - 1, CELLS),
    st.lists(pair(SPAN - 1, 2), min_size=1, max_size=3),
)


@dataclass
class Oracle:
    """The offsets that must be done after each step."""

    done: Points = field(default_factory=set)

    def position(self, cell: int) -> int:
        return next(o for o in range(SPAN + 1) if (o, cell) not in self.done)

    @property
    def stable(self) -> int:
        return min(map(self.position, range(CELLS)))

    def delete_ics(self) -> None:
        self.done = {(o, c) for c in range(CELLS) for o in range(self.position(c))}


class Run:
    """A group whose one member owns everything, at offsets from `base` on."""

    def __init__(self, world: World, base: int) -> None:
        self.world, self.base, self.oracle = world, base, Oracle()
        world.found(p0=base)
        world.logs_reach()
        self.me = world.join()
        world.store.positions.acquire(self.me, WANTED)

    def take(self, step: Step) -> None:
        match step.kind:
            case "api":
                self._commit(step)
            case "source":
                self._facts(step, fenced=True)
            case "assertion":
                self._facts(step, fenced=False)
            case "acquired":
                self.world.store.positions.acquire(self.me, {TP: (step.hashes,)})
            case "deleted":
                self.world.delete_ics()
                self.oracle.delete_ics()

    def _commit(self, step: Step) -> None:
        before, ranges = self.oracle.done, union(step.ranges(self.base))
        repeated = [r for r in ranges if self._points(r, step) <= before]
        too_old = ranges[-1].until <= self.base + self.oracle.stable
        with CommitApi.of_member(self.world.url, self.world.group, "m-1") as commits:
            lanes = [Owned(step.hashes, "aa.1")]
            if too_old:
                with pytest.raises(IndividualCommitTooOldError):
                    commits.commit(TP, step.ranges(self.base), lanes=lanes)
                return
            self.oracle.done = before | step.points
            answer = commits.commit(TP, step.ranges(self.base), lanes=lanes)
        assert (answer.stable, answer.duplicates) == (self.base + self.oracle.stable, len(repeated))

    def _points(self, r: OffsetRange, step: Step) -> Points:
        offsets = range(r.start - self.base, r.until - self.base)
        return {(o, c) for o in offsets for c in range(step.first, step.last + 1)}

    def _facts(self, step: Step, *, fenced: bool) -> None:
        """The source commits everything before the first range, and all of the ranges."""
        ranges = union(step.ranges(self.base))
        below = range(ranges[0].start - self.base)
        self.oracle.done |= step.points | {(o, c) for o in below for c in range(step.first, step.last + 1)}
        facts: Facts = {TP: (Fact(step.hashes, ranges[0].start, "aa.1" if fenced else "", ranges),)}
        if fenced:
            assert self.world.store.positions.commit(self.me, offset(), facts).value.refused == {}
        else:
            self.world.store.positions.claim(offset(), facts)

    def check(self) -> None:
        progress = Progress.parse(self.world.positions(), self.world.ics())
        assert progress.tiles
        assert (positions_text(progress), ics_text(progress)) == (self.world.positions(), self.world.ics())
        assert self._done(progress) == self.oracle.done
        assert self.world.store.positions.stable(["orders"])[TP] == self.base + self.oracle.stable

    def _done(self, progress: Progress) -> Points:
        points: Points = set()
        for s in progress.segments:
            done = union((*s.ics, *([OffsetRange(self.base, s.position)] if s.position > self.base else [])))
            offsets = [o - self.base for r in done for o in range(r.start, r.until)]
            points |= {(o, c) for o in offsets for c in range(CELLS) if BOUNDS[c] in s.hashes}
        return points


@settings(max_examples=20)  # on each server
@given(st.sampled_from((0, 95, BIG - 6, 10**15 - 6, 10**16 - 6)), st.lists(steps, min_size=3, max_size=12))
def test_every_script_makes_exactly_the_points_done(store_server: StoreServer, base: int, history: list[Step]) -> None:
    run = Run(World(store_server), base)
    for step in history:
        run.take(step)
        run.check()
