"""The plane of a partition: key hash upwards, offset to the right. Pure; a picture shows it.

hash |#######a####|        done by member a, up to the position of each lane
|##b##|   |#b#|       a gap, then individual commits
|#x   |   |           a failing key, at its record
^stable         ^furthest       ^end
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from coordinator.errors import UnknownTopicError
from coordinator.progress.failing import FailingRecord
from coordinator.progress.segments import Segment
from coordinator.progress.slices import Slice
from coordinator.redis.group_state import GroupState
from coordinator.tools.operations.gaps import progress
from coordinator.values.hash_map import HashMap
from coordinator.values.subscription import TopicPartition

_MARGIN = 4  # one part in so many of what is shown lies before the stable offset


@dataclass(frozen=True, slots=True)
class PlaneLane:
    """Hashes with one position and one owner."""

    segment: Segment
    member: str | None  # None if no member owns the hashes


@dataclass(frozen=True, slots=True)
class Plane:
    """A partition at one moment."""

    tp: TopicPartition
    lanes: tuple[PlaneLane, ...]  # from the lowest hash up
    end: int  # the log end as a member saw it last; at least `furthest`
    failing: tuple[FailingRecord, ...] = ()
    working: tuple[Slice, ...] = ()  # that tasks are at

    @property
    def stable(self) -> int:
        """Everything before it is done."""
        return min(lane.segment.position for lane in self.lanes)

    @property
    def furthest(self) -> int:
        """Nothing is done from here on."""
        return max(lane.segment.reach for lane in self.lanes)

    @property
    def lag(self) -> int:
        """Offsets from the stable offset to the end."""
        return self.end - self.stable

    @property
    def start(self) -> int:
        """The first offset that is worth showing: 0, or a little before the stable offset if most is done."""
        return self.stable - max(1, self.lag // _MARGIN) if self.stable > self.lag else 0

    @property
    def members(self) -> tuple[str, ...]:
        """The owners."""
        return tuple(sorted({lane.member for lane in self.lanes if lane.member}))

    def working_in(self, lane: PlaneLane) -> list[Slice]:
        """Those of `working` that have hashes of a lane."""
        return [s for s in self.working if s.hashes.intersection(lane.segment.hashes)]


def plane(state: GroupState, tp: TopicPartition, failing: Iterable[FailingRecord] = ()) -> Plane:
    """The plane of a partition with positions. Lanes are cut as members planned them last, and between owners."""
    owners = HashMap((hashes, member) for hashes, _, member in state.owners.get(tp, ()))
    bounds = {line.hashes.lo for lines in state.lanes.values() for line in lines if line.tp == tp}
    pieces = ((s, piece) for s in progress(state, tp).segments for piece in s.hashes.cut(bounds))
    lanes = tuple(PlaneLane(s.within(h), member) for s, piece in pieces for h, member in owners.filled(piece, None))
    furthest = Plane(tp, lanes, 0).furthest
    here = tuple(r for r in failing if r.tp == tp)
    working = tuple(s for slices in state.working.values() for s in slices if s.topic_partition == tp)
    return Plane(tp, lanes, max(state.ends.get(tp, 0), furthest), here, working)


def chosen(state: GroupState, topic: str | None, partition: int | None) -> TopicPartition:
    """The partition with the largest lag among those that are named. Raises `UnknownTopicError` if there is none."""
    found = {
        tp: state.ends.get(tp, 0) - min(position for _, position in segments)
        for tp, segments in state.segments.items()
        if segments and topic in (None, tp.topic) and partition in (None, tp.partition)
    }
    if not found:
        raise UnknownTopicError("the group has no position there", f"name one of these: {_known(state.segments)}")
    return max(sorted(found), key=lambda tp: found[tp])


def _known(segments: Mapping[TopicPartition, object]) -> str:
    return ", ".join(map(str, sorted(segments))) or "none"
