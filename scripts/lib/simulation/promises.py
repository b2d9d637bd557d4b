"""Checks the reads of one driver against the state in Redis before and after each of its calls."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from coordinator.assignment.policies import Policy
from coordinator.plan.poison import Strike
from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import StreamOffset
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import TopicPartition
from simulation.kafka import HASHES, Record
from simulation.sink import Violation
from simulation.state import State

Cells = frozenset[tuple[TopicPartition, int, str]]  # with lane epoch


@dataclass(slots=True)
class Attempt:
    """The common facts of the attempts at one batch so far."""

    asked: int = 0  # the script that authorised the latest attempt
    cells: Cells | None = None  # the cells authorised at every attempt so far
    records: list[Record] | None = None  # the records of a complete attempt
    lives: dict[TopicPartition, int] | None = None  # how often each log had been cut at the first attempt


def no_log_was_cut(verb: str, what: str = "", *, happened: bool) -> None:
    """Raise `Violation` for a script or an error that says that a log was cut: retention only moves beginnings.

    `happened`: a log was cut indeed.
    """
    if happened:
        return
    if verb == "recreate" or "the log ends at" in what or "are no longer in the log" in what:
        raise Violation(f"CUT: no log was cut: {verb} {what}")


def reads_what_is_owned(end: StreamOffset, readable: StreamOffset, before: State, after: State) -> None:
    """A driver reads only owned ranges, and all that it owned all the time (rule: authorize-every-batch)."""
    cells, owned = cells_of(readable), _owned(end, before)
    if strange := cells - owned:
        raise Violation(f"FENCE: it may read cells that it did not own: {min(strange)}")
    if missing := (owned & _owned(end, after)) - cells:
        raise Violation(f"RESUME: it owns cells that it may not read: {min(missing)}")


def keeps_partition_order(policy: Policy, end: StreamOffset, packed: Iterable[Sequence[Slice]]) -> bool:
    """Whether partitions are read in order; raises `Violation` if one has two tasks or two ends.

    rule: partition-order
    """
    ordered = {tp: lanes for tp, lanes in end.lanes.items() if policy.in_order(tp.topic)}
    tasks = Counter(tp for task in packed for tp in {s.topic_partition for s in task})
    for tp, lanes in ordered.items():
        ends = {lane.offsets[-1].until for lane in lanes if lane.offsets}
        if len(ends) > 1 or tasks[tp] > 1:
            raise Violation(f"PARTITION ORDER: {tp} is read by {tasks[tp]} tasks, up to {sorted(ends)}")
        if ends and sum(lane.hashes.size for lane in lanes) != WHOLE.size:
            raise Violation(f"PARTITION ORDER: a part of {tp} is read")
    return any(lane.offsets for lanes in ordered.values() for lane in lanes)


def joined_hashes_have_one_owner(
    end: StreamOffset, member: str, states: Sequence[State], topics: Collection[str]
) -> None:
    """A member plans a hash of joined topics if it owns it in all of them at one moment (rule: joined-topics)."""
    for tp, key_hash in _hashes(end.slices):
        everywhere = [TopicPartition(topic, tp.partition) for topic in topics]
        if not any(all(state.owner(other, key_hash) == member for other in everywhere) for state in states):
            raise Violation(f"JOINED: {member} plans hash {key_hash:x} of {tp}, and does not own it in all of {topics}")


def joined_hashes_are_in_one_task(packed: Sequence[Sequence[Slice]]) -> int:
    """How many hashes a batch reads of several joined topics. One task reads them (rule: joined-topics)."""
    tasks: dict[tuple[int, int], set[int]] = {}
    topics: dict[tuple[int, int], set[str]] = {}
    for number, slices in enumerate(packed):
        for tp, key_hash in _hashes(slices):
            tasks.setdefault((tp.partition, key_hash), set()).add(number)
            topics.setdefault((tp.partition, key_hash), set()).add(tp.topic)
    if torn := [key for key, numbers in tasks.items() if len(numbers) > 1]:
        raise Violation(f"JOINED: tasks {sorted(tasks[torn[0]])} read hash {torn[0][1]:x} of partition {torn[0][0]}")
    return sum(len(names) > 1 for names in topics.values())


def _hashes(slices: Iterable[Slice]) -> set[tuple[TopicPartition, int]]:
    return {(s.topic_partition, h) for s in slices for h in HASHES if h in s.hashes}


def reads_nothing_parked(readable: StreamOffset, before: State, after: State) -> None:
    """No batch contains a lane that is parked all the time, whenever it was planned (rule: parked-until-released)."""
    for tp, lane in readable:
        for strike in (s for s in before.strikes & after.strikes if s.parked and s.tp == tp):
            if lane.position <= strike.offset < lane.until and lane.hashes.intersection(strike.hashes):
                raise Violation(f"PARKED: {lane} of {tp} is read though {strike} is parked")


def tries_apart(
    end: StreamOffset, planned: Collection[Record], struck: Iterable[Strike], before: State, now: State
) -> bool:
    """Whether a struck lane is on trial: apart, within its strike. A parked lane is never read.

    rule: struck-lane-apart, rule: parked-until-released
    """
    tried = False
    for strike in struck:
        until = strike.offsets.until
        of = [r for r in planned if r.tp == strike.tp and r.hash in strike.hashes]
        of = [r for r in of if before.position(r) < until and now.position(r) < until]
        if strike.parked:
            of = [r for r in of if r.offset >= strike.offset]
        if of and strike.parked:
            raise Violation(f"PARKED: {of[0]} is planned though {strike} is parked")
        lanes = [lane for r in of for lane in end.lanes[r.tp] if r.hash in lane.hashes]
        if wide := [x for x in lanes if x.hashes.intersection(strike.hashes) != x.hashes or x.until > until]:
            raise Violation(f"TRIAL: {wide[0]} goes beyond {strike}")
        tried |= bool(of)
    return tried


def holds_back(planned: Iterable[Record], states: Sequence[State], most: int) -> bool:
    """Whether a partition was at its cap all the time. Then lanes ahead read gaps (rule: individual-commit-cap)."""
    before, now = states[0], states[-1]
    full = [tp for tp in before.ics if min(s.held(tp) for s in states) >= most]
    for record in (r for r in planned if r.tp in full and before.position(r) > now.stable(r.tp)):
        if record.offset >= max(before.last_gap(record), now.last_gap(record)):
            raise Violation(f"FULL: {record} is ahead of stable {now.stable(record.tp)}, and is planned")
    return bool(full)


def same_as_before(
    before: Attempt, end: StreamOffset, readable: StreamOffset, records: list[Record], aged: Callable[[Record], bool]
) -> None:
    """A replay that owns everything has the same records (rule: exact-resume)."""
    if _width(readable) == _width(end):
        left = None if before.records is None else [r for r in before.records if not aged(r)]
        if left not in (None, sorted(records)):
            raise Violation("REPLAY: a batch has other records than at its first attempt")
        before.records = sorted(records)


def ends_may_be_unknown(*, entries_lost: int) -> None:
    """The ends of a batch are unknown only if the entry of its member was lost (rule: unknown-is-beginning)."""
    if not entries_lost:
        raise Violation("REPLAY: a batch has unknown ends, and no entry of a member was lost")


def only_the_rest(
    before: Attempt,
    end: StreamOffset,
    now: State,
    records: list[Record],
    completed: Collection[Record],
    aged: Callable[[Record], bool],
) -> None:
    """A replay may leave out acknowledged records, and those that it no longer owns (rule: replay-acknowledged)."""
    left = [r for r in before.records or () if not aged(r) and r not in records and _still_owned(end, now, r)]
    if missing := [r for r in left if r not in completed]:
        raise Violation(f"REPLAY: {missing[0]} was not acknowledged and is left out")
    before.records = None


def no_more_than_before(before: Attempt, asked: int, readable: StreamOffset) -> None:
    """No attempt at a batch gets more than an earlier one.

    `asked`: the number of the script that authorised it, because the first request may start last.
    """
    cells = cells_of(readable)
    earlier, later = (before.cells, cells) if asked >= before.asked else (cells, before.cells)
    if earlier is not None and later is not None and later - earlier:
        raise Violation(f"REPLAY: a batch was authorised more than at an earlier attempt: {min(later - earlier)}")
    before.asked, before.cells = max(asked, before.asked), later


def nothing_confirmed(planned: Iterable[Record], states: Sequence[State]) -> None:
    """A batch contains no record that was confirmed all the time (rule: bounded-repeats); a loss may undo some."""
    for record in planned:
        if record.offset < min(s.position(record) for s in states):
            raise Violation(f"REPEAT: {record} was confirmed and is planned again")
        if all(s.acknowledged(record) for s in states):
            raise Violation(f"REPEAT: {record} was acknowledged and is planned again")


def kept_what_may_be_written(
    end: StreamOffset, before: State, after: State, last_owner: Mapping[tuple[TopicPartition, int], str]
) -> None:
    """A leave frees no range of a batch that the sink may not have completed, because killed tasks may still write it.

    A member that leaves repeats an interrupted commit. So ranges that this commit confirms may be freed.
    """
    if before.nonce != after.nonce:
        return
    for tp, lane in end:
        for h in (h for h in HASHES if h in lane.hashes and after.at_hash(tp, h) < lane.until):
            if before.epoch(tp, h) == lane.epoch == last_owner[tp, h] and after.epoch(tp, h) is None:
                raise Violation(f"LEAVE: hash {h} of {tp} was freed, which a task may still write")


def _width(offset: StreamOffset) -> int:
    """The number of cells of its lanes; hashes of records without a key are no cells."""
    return sum(lane.hashes.size if offset.by_key else sum(map(len, lane.offsets)) for _, lane in offset)


def _still_owned(end: StreamOffset, state: State, record: Record) -> bool:
    epoch = state.epoch(record.tp, record.hash)
    lanes = (lane for tp, lane in end if tp == record.tp and record.hash in lane.hashes)
    return not end.by_key or any(lane.epoch == epoch for lane in lanes)


def _owned(end: StreamOffset, state: State) -> Cells:
    if not end.by_key:
        return frozenset(c for c in cells_of(end) if state.handed.get(c[0], {}).get(c[1], ("", ""))[0] == c[2])
    return frozenset(c for c in cells_of(end) if state.epoch(c[0], c[1]) == c[2])


def cells_of(offset: StreamOffset) -> Cells:
    """The cells of an offset's lanes: each hash of an existing key, without order each offset."""
    if not offset.by_key:
        slices = ((tp, lane.epoch, r) for tp, lane in offset for r in lane.offsets)
        return frozenset((tp, o, epoch) for tp, epoch, r in slices for o in range(r.start, r.until))
    return frozenset((tp, h, lane.epoch) for tp, lane in offset for h in HASHES if h in lane.hashes)
