"""The turn of an ordered commit, on a real Redis, against its oracle: done (offset, cell) points, and reservations.

Two members share a partition. A cell is a hash range; each member owns half of the cells.
"""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.progress.ownership import Owned
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.commits import CommitVerbs, Reservation, Standing
from coordinator.values.ranges import HASH_MAX, HashRange, OffsetRange
from store_world import LONGEST, SESSION, TP, StoreServer, World

ON_EACH_SERVER = True

SPAN, CELLS, BASE = 8, 4, 95  # offsets of two and of three digits
BOUNDS = [0, 7, HASH_MAX // 2, HASH_MAX - 7, HASH_MAX + 1]
CELLS_OF = {"m-1": (0, 2), "m-2": (2, 4)}
SHORT_MS, LONG_MS = 500, 100_000
Points = set[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Rectangle:
    """Offsets from the base x cells, both half-open."""

    offsets: tuple[int, int]
    cells: tuple[int, int]

    def points(self, below: int = SPAN) -> Points:
        return {(o, c) for o in range(self.offsets[0], min(below, self.offsets[1])) for c in range(*self.cells)}

    @property
    def hashes(self) -> HashRange:
        return HashRange(BOUNDS[self.cells[0]], BOUNDS[self.cells[1]] - 1)

    @property
    def ranges(self) -> OffsetRange:
        return OffsetRange(BASE + self.offsets[0], BASE + self.offsets[1])


@dataclass(frozen=True, slots=True)
class Step:
    """A call of one worker, or something that happens to all."""

    kind: str  # held, parked, ended: a reservation; commit; deleted: the individual commits; passes: time
    member: str
    worker: str
    offsets: tuple[int, int]
    all_cells: bool
    lease_ms: int

    @property
    def rectangle(self) -> Rectangle:
        first, past = CELLS_OF[self.member]
        return Rectangle(self.offsets, (first, past if self.all_cells else first + 1))


@dataclass
class Oracle:
    """The done points, and the reservations: their worker, and the end of its lease."""

    done: Points = field(default_factory=set)
    reserved: dict[Rectangle, tuple[tuple[str, str], int]] = field(default_factory=dict)

    def turn(self, step: Step, now: int) -> str:
        mine, me = step.rectangle, (step.member, step.worker)
        if step.kind == "ended":
            self.end(mine, me)
        self.reserved = {r: by for r, by in self.reserved.items() if r.points() - self.done}
        others = {r: (by, end >= now) for r, (by, end) in self.reserved.items() if by != me}
        if any(live and by[0] == step.member and r.points() & mine.points() for r, (by, live) in others.items()):
            return "TAKEN"
        lower = [live for r, (_, live) in others.items() if r.points(mine.offsets[0]) - self.done]
        behind = Rectangle((0, mine.offsets[0]), mine.cells).points() - self.done
        word = "WAIT" if any(lower) else "ALONE" if lower or behind else "TURN"
        if step.kind != "ended":
            refused = step.kind == "parked" and word == "ALONE"
            self.reserved[mine] = me, 0 if refused else now + step.lease_ms
        return word

    def end(self, mine: Rectangle, me: tuple[str, str]) -> None:
        begun = {o for o, _ in mine.points()}
        cells = set(range(*mine.cells))
        for r, (by, _) in list(self.reserved.items()):
            if by == me and r.offsets[0] in begun and cells & set(range(*r.cells)):
                del self.reserved[r]

    def delete_ics(self) -> None:
        tops = [next(o for o in range(SPAN + 1) if (o, c) not in self.done) for c in range(CELLS)]
        self.done = {(o, c) for c in range(CELLS) for o in range(tops[c])}


class Run:
    """A group of two members on a clock that stands still."""

    def __init__(self, world: World) -> None:
        self.world, self.oracle = world, Oracle()
        world.found(p0=BASE)
        world.logs_reach()
        times = {"session_ms": SESSION, "longest_ms": LONGEST, "retention_ms": 60_000}
        self._commits = CommitVerbs(ScriptCalls(world.client, world.group, **times, now=lambda: world.now))
        self._standings = {member: self._joined(member) for member in CELLS_OF}

    def _joined(self, member: str) -> Standing:
        hashes = Rectangle((0, 1), CELLS_OF[member]).hashes
        self.world.store.positions.acquire(self.world.join(member), {TP: (hashes,)})
        return self._commits.standing(self.world.caller(member))

    def take(self, step: Step) -> None:
        standing, mine = self._standings[step.member], step.rectangle
        lanes = (Owned(mine.hashes, standing.lanes[TP][0].epoch),)
        match step.kind:
            case "passes":
                self.world.lapse(SHORT_MS + 1)
            case "deleted":
                self.world.delete_ics()
                self.oracle.delete_ics()
            case "commit":
                self._commits.commit_ranges(standing, TP, lanes, (mine.ranges,), 1_000)
                self.oracle.done |= mine.points()
            case state:
                wanted = Reservation(step.worker, mine.ranges, lanes)
                word = self._commits.reserve(standing, TP, wanted, state, step.lease_ms).word
                assert word == self.oracle.turn(step, self.world.now), step


steps = st.builds(
    Step,
    st.sampled_from(("held", "held", "parked", "parked", "ended", "commit", "commit", "deleted", "passes")),
    st.sampled_from(("m-1", "m-2")),
    st.sampled_from(("a", "b")),
    st.tuples(st.integers(0, SPAN - 1), st.integers(1, 3)).map(lambda p: (p[0], min(SPAN, sum(p)))),
    st.booleans(),
    st.sampled_from((SHORT_MS, LONG_MS)),
)


@settings(max_examples=20)  # on each server
@given(st.lists(steps, min_size=4, max_size=14))
def test_a_worker_has_its_turn_exactly_if_the_oracle_says_so(store_server: StoreServer, history: list[Step]) -> None:
    run = Run(World(store_server))
    for step in history:
        run.take(step)
