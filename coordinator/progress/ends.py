"""The true ends of a batch: how far each hash range was read, where its tasks ended their slices early. Pure.

    planned   |##########|      a slice reads up to its planned end
    true end  |####|            its task stopped here, so the batch ends here

Redis stores the ends of a whole batch as its seal: `topic partition lo-hi offset;...`, early ends only. Hashes that a
seal does not name were read to their planned end (rule: seal-before-sink). A replay adds lower ends of keys that it
defers: the lowest end of a hash counts (rule: replay-may-defer).
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from coordinator.errors import StateFormatError
from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.values import identifiers
from coordinator.values.hash_map import HashMap
from coordinator.values.ranges import NUMBER, OFFSET_MAX, HashRange, OffsetRange, Offsets
from coordinator.values.subscription import TopicPartition

NONE = HashMap[int]()
Ends = Mapping[TopicPartition, HashMap[int]]
"""Early ends by partition: the first offset that was not read."""

_PART = re.compile(rf"([\w.-]+) ({NUMBER}) ([0-9a-f-]+) ({NUMBER});", re.ASCII)


def ends_of(tasks: Iterable[tuple[Iterable[Slice], Ends]]) -> Ends:
    """The early ends of a batch from the slices and the ends of each of its tasks, which read no hash in common."""
    early: defaultdict[TopicPartition, list[tuple[HashRange, int]]] = defaultdict(list)
    for slices, ends in tasks:
        until: dict[tuple[TopicPartition, HashRange], int] = {}
        for s in slices:
            until[s.lane] = max(until.get(s.lane, 0), s.offsets.until)
        for (tp, lane), planned in until.items():
            early[tp] += ((hashes, end) for hashes, end in ends.get(tp, NONE).within(lane) if end < planned)
    return {tp: HashMap(sorted(early[tp])).coalesced() for tp in sorted(early) if early[tp]}


def slices_to(slices: Iterable[Slice], ends: Ends) -> tuple[Slice, ...]:
    """The slices of a task up to its ends."""
    return tuple(part for s in slices for part in _slices_to(s, ends.get(s.topic_partition, NONE)))


def _slices_to(s: Slice, ends: HashMap[int]) -> Iterator[Slice]:
    for hashes, until in HashMap.of(s.hashes, s.offsets.until).overlay(ends.within(s.hashes)):
        if s.offsets.start < until:
            yield Slice(s.topic_partition, hashes, OffsetRange(s.offsets.start, min(until, s.offsets.until)))


def ended(offset: StreamOffset, ends: Ends) -> StreamOffset:
    """The offset with the true ends of its lanes; itself if none ended early. Its digest is another one."""
    if not ends.keys() & offset.lanes.keys():
        return offset
    lanes = {tp: tuple(_ended(of_tp, ends[tp])) if tp in ends else of_tp for tp, of_tp in offset.lanes.items()}
    return replace(offset, lanes=lanes)


def unread(offset: StreamOffset) -> StreamOffset:
    """The offset of a batch whose ends nobody knows: it proves its beginnings only (rule: unknown-is-beginning)."""
    lanes = {tp: tuple(lane._replace(offsets=()) for lane in of_tp) for tp, of_tp in offset.lanes.items()}
    return replace(offset, lanes=lanes)


def _ended(lanes: Iterable[Lane], ends: HashMap[int]) -> Iterator[Lane]:
    for lane in lanes:
        for hashes, end in HashMap.of(lane.hashes, OFFSET_MAX).overlay(ends.within(lane.hashes)):
            yield lane._replace(hashes=hashes, offsets=_below(lane.offsets, end))


def _below(offsets: Offsets, end: int) -> Offsets:
    return tuple(OffsetRange(r.start, min(r.until, end)) for r in offsets if r.start < end)


def text_of(ends: Ends) -> str:
    """The seal of a batch with these ends."""
    return "".join(f"{tp.topic} {tp.partition} {h} {end};" for tp, of_tp in ends.items() for h, end in of_tp)


def parsed(text: str) -> Ends:
    """The ends in a seal, the lowest of each hash; raises `StateFormatError`."""
    found: defaultdict[TopicPartition, list[tuple[HashRange, int]]] = defaultdict(list)
    read = 0
    for part in _PART.finditer(text):
        if part.start() != read:
            break
        topic, partition, hashes, end = part.groups()
        tp = TopicPartition(identifiers.topic(topic), identifiers.partition(partition))
        found[tp].append((HashRange.parse(hashes), identifiers.number(int(end), identifiers.POSITION_MAX, "an end")))
        read = part.end()
    if read != len(text):
        raise StateFormatError(f"the seal of a batch is damaged: {text[:100]!r}")
    return {tp: _lowest(of_tp) for tp, of_tp in sorted(found.items())}


def _lowest(ends: list[tuple[HashRange, int]]) -> HashMap[int]:
    """The ends without overlaps: where some overlap, the lowest counts."""
    return HashMap((hashes, min(of_each)) for hashes, of_each in HashMap.stacked(ends)).coalesced()
