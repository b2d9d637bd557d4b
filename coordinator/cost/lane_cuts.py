"""Decides where lanes are cut by cost: an expensive key gets its own lane, slots end together, cheap lanes merge.

The decision is a pure function of the known costs of the last batch's lanes:

    one key is most of a lane's work      cut on both sides of it
    a slow lane, its keys not known       cut in the middle, and search in both halves
    the fullest slot takes too long       cut the heaviest of its lanes into halves of equal work
    two sides of a cut are alike, and     remove the cut, at most once a minute
    one slot has room for both
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapreplace

from coordinator.cost.batch_cost import LaneId
from coordinator.cost.profile import Cell
from coordinator.ranges import HASH_MAX, HashRange
from coordinator.subscription import TopicPartition
from coordinator.telemetry import KeyCost, dearest

WORTH_MS = 1_000.0
"""Shorter batches are not worth a cut."""

UNEVEN = 1.1
"""Cut if the fullest slot takes this many times the mean of all slots ..."""

VERY_UNEVEN = 1.3
"""... and this many times at steady load, within a minute after another change: smaller differences are chance."""

COSTLY = 1.3
"""A lane's records are slow when they cost this many times a healthy record."""

ALIKE = 1.5
"""Lanes whose records differ by less may merge."""

CRUMB = 0.05
"""A lane with less than this part of a slot's mean work is not slow. It merges if both lanes are below the mean."""

LANES_PER_SLOT = 4
"""Most lanes of a partition, for each slot."""


@dataclass(frozen=True, slots=True)
class LaneWork:
    """A lane of the last batch: its known cost, its work in a batch, and its most expensive keys if known."""

    lane: LaneId
    cell: Cell
    work_ms: float
    keys: tuple[KeyCost, ...] = ()
    short: bool = False  # its quota leaves records unread
    alone: bool = False  # it was cut, and its records cost no more than before: it has one key

    @property
    def hashes(self) -> HashRange:
        """Its hash range."""
        return self.lane[1]


Cuts = Mapping[TopicPartition, frozenset[int]]


@dataclass(frozen=True, slots=True)
class Decision:
    """The new cuts; and the lane that was cut to find its slow key, with its halves."""

    cuts: Cuts
    changed: bool = False
    parted: LaneWork | None = None
    halves: tuple[LaneId, ...] = ()


def more(
    cuts: Cuts,
    lanes: Sequence[LaneWork],
    *,
    slots: int,
    healthy_ms: float | None,
    exact: bool,
    uneven: float = UNEVEN,
) -> Decision:
    """The cuts, with added cuts for the lanes of a batch; one lane is cut at a time.

    The fullest slot may take `uneven` times the mean of all.

    Unless costs are `exact`, a slow lane is not cut to even out slots: the slow half would be unknown.
    """
    if sum(x.work_ms for x in lanes) < WORTH_MS:
        return Decision(cuts)
    mean = sum(x.work_ms for x in lanes) / slots
    for lane in sorted(lanes, key=lambda x: -x.work_ms):
        if room(cuts, lane, slots) and (bounds := _around_key(lane, mean)):
            return Decision(_added(cuts, lane, bounds), changed=True)
        if room(cuts, lane, slots) and _slow(lane, healthy_ms):
            bound = lane.hashes.lo + lane.hashes.size // 2
            halves = tuple((lane.lane[0], h) for h in lane.hashes.cut((bound,)))
            return Decision(_added(cuts, lane, (bound,)), changed=True, parted=lane, halves=halves)
    heaviest = _heaviest_of_fullest(lanes, slots, uneven * mean, exact=exact)
    if heaviest and room(cuts, heaviest, slots):
        return Decision(_added(cuts, heaviest, (_half(heaviest),)), changed=True)
    return Decision(cuts)


def fewer(cuts: Cuts, lanes: Sequence[LaneWork], *, slots: int) -> Cuts:
    """The cuts without those between similar lanes that have little work: one slot has room for both."""
    mean = sum(x.work_ms for x in lanes) / slots
    kept = {tp: set(bounds) for tp, bounds in cuts.items()}
    ordered = iter(sorted(lanes, key=lambda x: x.lane))
    low = next(ordered, None)
    for high in ordered:
        bound = high.hashes.lo
        if low and low.lane[0] == high.lane[0] and bound in kept.get(low.lane[0], ()) and _mergeable(low, high, mean):
            kept[low.lane[0]].remove(bound)
            low = _merged(low, high)
        else:
            low = high
    return {tp: frozenset(bounds) for tp, bounds in kept.items() if bounds}


def _mergeable(low: LaneWork, high: LaneWork, mean: float) -> bool:
    costs = [x.cell.record_ms for x in (low, high) if x.cell.record_ms is not None]
    alike = not costs or max(costs) <= ALIKE * min(costs)
    less, both = min(low.work_ms, high.work_ms), low.work_ms + high.work_ms
    return alike and (both <= mean / LANES_PER_SLOT or (less <= CRUMB * mean and both <= mean))


def _merged(low: LaneWork, high: LaneWork) -> LaneWork:
    whole = low.lane[0], HashRange(low.hashes.lo, high.hashes.hi)
    more_work = max(low, high, key=lambda x: x.work_ms)
    return replace(more_work, lane=whole, work_ms=low.work_ms + high.work_ms)


def room(cuts: Cuts, lane: LaneWork, slots: int) -> bool:
    """Whether the lane can be cut, and its partition may have more lanes."""
    return lane.hashes.size > 1 and len(cuts.get(lane.lane[0], ())) + 2 < LANES_PER_SLOT * slots


def _around_key(lane: LaneWork, mean: float) -> tuple[int, ...]:
    """The bounds around the lane's most expensive key, if the key stands out and the lane has much work."""
    key = dearest(lane.keys, lane.work_ms)
    if key is None or lane.work_ms < mean / 2:
        return ()
    return tuple(b for b in (key.key_hash, key.key_hash + 1) if lane.hashes.lo < b <= lane.hashes.hi)


def _slow(lane: LaneWork, healthy_ms: float | None) -> bool:
    """Whether the lane falls behind because its records are slow, and its slow keys are unknown."""
    if healthy_ms is None or lane.keys or lane.alone or not lane.short or lane.cell.record_ms is None:
        return False
    return lane.cell.record_ms > COSTLY * healthy_ms


def _heaviest_of_fullest(lanes: Sequence[LaneWork], slots: int, most_ms: float, *, exact: bool) -> LaneWork | None:
    """The lane to cut so that slots end together; None if they do, or no lane can be cut."""
    loads: list[tuple[float, int, list[LaneWork]]] = [(0.0, i, []) for i in range(slots)]
    for lane in sorted(lanes, key=lambda x: (-x.work_ms, x.lane)):
        total, i, of_slot = loads[0]
        of_slot.append(lane)
        heapreplace(loads, (total + lane.work_ms, i, of_slot))
    total, _, fullest = max(loads)
    if total <= most_ms:
        return None
    even = [x for x in fullest if x.hashes.size > 1 and not x.alone and (exact or not x.cell.sure)]
    return max(even, key=lambda x: x.work_ms, default=None)


def _half(lane: LaneWork) -> int:
    """The hash that halves a lane's work: expensive keys count at their hash, the rest is spread evenly."""
    spread = max(0.0, lane.work_ms - sum(k.ms for k in lane.keys))
    below, most = 0.0, lane.hashes.size - 1
    for key, ms, _ in sorted(lane.keys):
        even = spread * (key - lane.hashes.lo) / lane.hashes.size
        if below + even + ms > lane.work_ms / 2:
            most = min(most, key - lane.hashes.lo)
            break
        below += ms
    wanted = (lane.work_ms / 2 - below) / spread if spread else 0.5
    offset = int(min(max(wanted, 0.05), 0.95) * lane.hashes.size)
    return lane.hashes.lo + max(1, min(offset, most))


def finely(lane: LaneId, parts: int) -> tuple[LaneId, ...]:
    """The lane in this many parts of equal size, or whole if it is too small."""
    tp, hashes = lane
    count = max(1, min(parts, hashes.size))
    return tuple((tp, h) for h in hashes.cut(hashes.lo + i * hashes.size // count for i in range(1, count)))


def cut_between(cuts: Cuts, families: Iterable[Sequence[LaneId]]) -> Cuts:
    """The cuts, with added cuts between the lanes of each family."""
    after = dict(cuts)
    for (tp, _), *others in families:
        after[tp] = after.get(tp, frozenset()) | {h.lo for _, h in others}
    return after


def _added(cuts: Cuts, lane: LaneWork, bounds: Iterable[int]) -> dict[TopicPartition, frozenset[int]]:
    tp = lane.lane[0]
    return {**cuts, tp: cuts.get(tp, frozenset()) | {b for b in bounds if 0 < b <= HASH_MAX}}
