"""New partitions of topics that grew wait for older ones. Pure.

    look       the group's growths, and the time of Redis          `owning.follow`
    bounds     the ends of all logs: limits of new partitions
    sight      then the high watermarks of the older partitions: they must be done up to there first
    limit      then the older partitions' positions, and ceilings for the work on new partitions

The order matters (rule: growth-order). A record below a new partition's end is newer than all records of its key in
older partitions, and those lie below a watermark that is read later. A transaction may be open in an older partition
and committed in the new one: so watermarks, not ends.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from coordinator.assignment.assignment_text import Ranges, event_text
from coordinator.assignment.rebalance import difference, union
from coordinator.errors import ConflictingOptionsError
from coordinator.errors.quoting import VALUE
from coordinator.errors.quoting import bounded as shortened
from coordinator.member.decision import RETRY_MS, Call, Decision, LookAgain, Return, Seen
from coordinator.member.low_ends import believed
from coordinator.member.requests import (
    Log,
    ReadAssignment,
    ReadGrowths,
    ReadHighWatermarks,
    ReadPartitionCounts,
    ReadPositions,
    RecordGrowths,
)
from coordinator.member.state import Growing, Offsets, State, unsure
from coordinator.plan.planning import OwnedRanges, bounded
from coordinator.progress.growth import OPEN, Growth, Segments, Sight, ceilings, levels, older_partitions, remembered
from coordinator.values.hash_map import HashMap
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import TopicPartition


def set_targets(state: State, seen: Seen, call: Call) -> Decision:
    """AvailableNow ends at the log ends of now; older partitions end at their watermarks, read a little later.

    So a new partition can be read up to its target as soon as the older ones are at theirs.

    Raises `ConflictingOptionsError` if other reads of the query read joined topics. Spark asks its reads one after the
    other, so one would wait for another driver, which waits for the other read.
    """
    if call.setup.partial:
        raise ConflictingOptionsError(
            "trigger(availableNow=True) is set, but copartition joins topics that this load() does not read",
            "name all topics of copartition in the option subscribe, or use another trigger",
        )
    bounds = state.log.bounds
    if state.log.silent:
        return Decision(state, (), LookAgain(RETRY_MS))
    older = older_partitions(seen.of(ReadGrowths()), seen.of(ReadPartitionCounts()), state.log.topics)
    state, taken = _with_sight(state, older & bounds.keys(), seen)
    if not taken:
        return Decision(state, (), LookAgain(RETRY_MS, "Kafka does not name the watermarks of all partitions"))
    targets = {tp: b.end for tp, b in bounds.items()} | dict(state.growing.sights[-1].marks)
    return Decision(replace(state, pace=replace(state.pace, targets=targets)), (), Return(None))


def log_growths(state: State, seen: Seen, call: Call) -> Decision:
    """Log one line for each growth, at its first sight; and for hashes that wait for hashes without a reader."""
    new = {replace(g, ends=()) for g in _of_these_topics(state)} - state.growing.logged
    group = call.setup.settings.group
    lines = tuple(Log(f"group {group}: {g}", info=g.kept) for g in sorted(new, key=lambda g: g.field))
    unnamed = _unnamed(state, seen, call)
    if unnamed and unnamed != state.growing.unnamed:
        lines += (
            Log(
                f"group {group}: new partitions wait for older ones of which no pinned member names "
                f"{shortened(event_text(unnamed), VALUE)}. Remedy: start a query that names these hashes"
            ),
        )
    if not lines and unnamed == state.growing.unnamed:
        return Decision(state)
    growing = replace(state.growing, logged=state.growing.logged | new, unnamed=unnamed)
    return Decision(replace(state, growing=growing), lines)


def _unnamed(state: State, seen: Seen, call: Call) -> Ranges:
    """The hashes of older partitions that no pinned member names: the same hashes of new partitions wait for them."""
    older = {tp for g in _active(state) for tp in g.holding} if call.setup.pinned else set()
    if not older:
        return {}
    claims = seen.of(ReadAssignment()).values()
    named = {tp: union(hashes for claim in claims for hashes in claim.get(tp, ())) for tp in older}
    return difference(dict.fromkeys(sorted(older), (WHOLE,)), named)


def older_partitions_first(
    state: State, work: OwnedRanges, ends: Offsets, seen: Seen, call: Call
) -> tuple[State, OwnedRanges]:
    """The work with ceilings: each hash of a new partition stops where the older ones are not done."""
    state = _timed(state, seen)
    nonce, active = state.life.nonce, _active(state)
    closed = frozenset(tp for g in active for tp in g.newer)
    if not active:
        return replace(state, growing=replace(state.growing, closed=closed, sights=())), work
    older = {tp for g in active for tp in g.holding}
    state, taken = _with_sight(replace(state, growing=replace(state.growing, closed=closed)), older, seen)
    sights = state.growing.sights if taken else ()  # an earlier sight is older than the record of a growth
    if taken:
        graces = state.growing.graces or {}
        _record(state.growing, [g for g in active if seen.now_ms >= graces[g.field] and not g.ends], seen)
    positions = _positions(state, older, seen, call)
    over = state.growing.over
    for growth in active:
        work, done = _limited(growth, work, positions, sights)
        over = over | {(growth, nonce)} if done else over
    return replace(state, growing=replace(state.growing, over=over)), work


def _timed(state: State, seen: Seen) -> State:
    """The ends of graces by the clock of this host: a clock of Redis that is set forward ends none early.

    A growth that is new to this process was recorded after its last look: so its whole grace lies ahead. Only for
    those of its first look the clock of Redis decides how much is left.
    """
    known, growths = state.growing.graces, _of_these_topics(state)
    if known is not None and all(g.field in known for g in growths):
        return state

    def left(growth: Growth) -> int:
        whole = growth.until_ms - growth.seen_ms
        return whole if known is not None else min(whole, max(0, growth.until_ms - state.owning.looked_at_ms))

    graces = {g.field: seen.now_ms + left(g) for g in growths}
    return replace(state, growing=replace(state.growing, graces=graces | dict(known or {})))


def _of_these_topics(state: State) -> list[Growth]:
    topics = state.log.topics
    return [g for g in state.owning.growths if g.topic in topics and g.topic_id == topics[g.topic].id]


def _active(state: State) -> list[Growth]:
    """The growths that may hold hashes of new partitions back."""
    return [g for g in _of_these_topics(state) if g.gated and (g, state.life.nonce) not in state.growing.over]


def _limited(
    growth: Growth, work: OwnedRanges, positions: Mapping[TopicPartition, Segments], sights: tuple[Sight, ...]
) -> tuple[OwnedRanges, bool]:
    """The work under the ceilings of one growth, and whether the growth is over."""
    of_steps = {step: levels(step, positions, sights) for step in growth.steps}
    for step, level in of_steps.items():
        gated = {tp: bounded(work[tp], ceilings(level, tp, sights)) for tp in step.newer if tp in work}
        work = {**work, **gated}
    return work, bool(growth.ends) and all(level == HashMap.of(WHOLE, OPEN) for level in of_steps.values())


def _with_sight(state: State, older: Collection[TopicPartition], seen: Seen) -> tuple[State, bool]:
    """One more sight: the log ends, then the high watermarks of the older partitions.

    None is taken while a watermark is lower than an end that was seen before: records would seem not to be there.
    """
    growing, ids = state.growing, state.log.topic_ids
    if not state.log.silent.isdisjoint(older):
        return state, False
    if ids != growing.topic_ids:
        growing = replace(growing, sights=(), low={}, topic_ids=ids)
    marks = seen.of(ReadHighWatermarks(tuple(sorted(older))))
    if not marks.keys() >= set(older):
        return state, False
    last = growing.sights[-1].marks if growing.sights else {}
    ends, reached = {tp: b.end for tp, b in state.log.bounds.items()}, state.log.reached
    known = {tp: max(of.get(tp, 0) for of in (ends, reached, last)) for tp in marks}
    wanted = {tp: known[tp] for tp, mark in marks.items() if mark < known[tp]}
    low, again = believed(growing.low, state.log.bounds, wanted, seen)
    growing = replace(growing, low=low)
    if unsure(low):
        return replace(state, growing=growing), False
    sight = Sight(growing.number, ends, {**marks, **again})
    growing = replace(growing, sights=remembered(growing.sights, sight), number=growing.number + 1)
    return replace(state, growing=growing), True


def _record(growing: Growing, ended: Sequence[Growth], seen: Seen) -> None:
    """The grace is over: record the ends that the older partitions have now. The first record wins."""
    marks = growing.sights[-1].marks
    if ended:
        seen.done(RecordGrowths(tuple(replace(g, ends=tuple(marks[tp] for tp in g.holding)) for g in ended)))


def _positions(
    state: State, older: Collection[TopicPartition], seen: Seen, call: Call
) -> dict[TopicPartition, Segments]:
    """The positions of older partitions that this or another member should read.

    Of a pinned group, all older ones: the member that names one may start later.
    """
    if call.setup.pinned:
        return dict(seen.of(ReadPositions(tuple(sorted(older)))))
    assignment = seen.of(ReadAssignment())
    read = {tp for ranges in assignment.values() for tp in ranges} | set(state.log.partitions)
    return dict(seen.of(ReadPositions(tuple(sorted(tp for tp in older if tp in read)))))
