"""Poison: a record that hangs its reader must not stop the group member by member (rule: trial-alone). Pure.

    a member dies with slices under way             each slice gets a strike, with its offsets
    one strike                                      trials, record by record, until these offsets are read
    struck twice outside a trial                    left out of a batch that was planned earlier; then trials
    struck again in a trial                         parked: unread until an operator releases it
    ... while the task was at one key's record      that key is parked, at that record
    its position has passed the offsets             the strike is removed

Every second batch reads the other lanes: a strike may cover a thousand records, each with a trial. Redis counts strikes
and parks slices (`redis/lua/shared/strikes.lua`).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter

from coordinator.assignment.assignment_text import Ranges
from coordinator.assignment.rebalance import minus, owned_ranges, union
from coordinator.errors import StateFormatError
from coordinator.plan.planning import OwnedRange, OwnedRanges
from coordinator.progress.ownership import Owned, Ownership
from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import StreamOffset
from coordinator.ranges import NUMBER, HashRange, OffsetRange
from coordinator.subscription import TopicPartition

OffsetsOfARecord = Callable[[tuple[TopicPartition, HashRange]], int]
"""How many offsets hold about one record of a lane."""

MOST_SLICES = 64
"""The most slices of a report. Among more, the hung slice is not visible."""

_FIELD = re.compile(rf"(\S+) ({NUMBER}) (\S+)")
_VALUE = re.compile(rf"(struck|parked) ({NUMBER}) ({NUMBER})-({NUMBER}) ({NUMBER}) (\S*)")


@dataclass(frozen=True, slots=True, order=True)
class Strike:
    """A hash range of a partition, and the offsets that a lost member was reading there."""

    tp: TopicPartition
    hashes: HashRange
    offsets: OffsetRange
    count: int
    at_ms: int = 0
    member: str = ""  # the last one that was lost over it
    parked: bool = False  # left unread until it is released

    @property
    def offset(self) -> int:
        """The beginning of the slice that was read last, in vain."""
        return self.offsets.start

    @property
    def text(self) -> str:
        """Its value in Redis."""
        word, o = "parked" if self.parked else "struck", self.offsets
        return f"{word} {self.count} {o.start}-{o.until} {self.at_ms} {self.member}"

    @property
    def field(self) -> str:
        """Its name in Redis."""
        return f"{self.tp.topic} {self.tp.partition} {self.hashes}"

    @property
    def state(self) -> str:
        """Its state for people and programs."""
        return "parked" if self.parked else "tried alone"

    @property
    def shown(self) -> dict[str, object]:
        """The strike for programs."""
        where = {"topic": self.tp.topic, "partition": self.tp.partition, "hashes": str(self.hashes)}
        counted = {"strikes": self.count, "state": self.state, "at_ms": self.at_ms, "member": self.member}
        return {**where, "offset": self.offset, **counted}

    @classmethod
    def parse(cls, field: str, value: str) -> "Strike":
        """The strike of its two texts; raises `StateFormatError`."""
        where, what = _FIELD.fullmatch(field), _VALUE.fullmatch(value)
        if not (where and what):
            expected = "struck|parked <count> <from>-<until> <ms> <member>"
            raise StateFormatError(f"strike {field!r} is {value!r}, not {expected}")
        tp, offsets = TopicPartition(where[1], int(where[2])), OffsetRange(int(what[3]), int(what[4]))
        word, count, at_ms, member = what[1], int(what[2]), int(what[5]), what[6]
        return cls(tp, HashRange.parse(where[3]), offsets, count, at_ms, member, word == "parked")


def chosen(strikes: Iterable[Strike], tp: TopicPartition | None, hashes: HashRange | None) -> list[Strike]:
    """The strikes of a partition, or of exactly one range of it. None means all."""
    return [s for s in strikes if tp in (None, s.tp) and hashes in (None, s.hashes)]


def struck_ranges(strikes: Iterable[Strike]) -> dict[TopicPartition, tuple[HashRange, ...]]:
    """The hashes of strikes, parked or not."""
    of_tp: dict[TopicPartition, list[HashRange]] = {}
    for strike in strikes:
        of_tp.setdefault(strike.tp, []).append(strike.hashes)
    return {tp: union(hashes) for tp, hashes in of_tp.items()}


def working_text(slices: Iterable[Slice], *, alone: bool = False) -> str:
    """The slices that a member's tasks have begun, in the form of Redis; empty above MOST_SLICES. `alone`: a trial."""
    texts = [f"{s.topic} {s.partition} {s.hashes} {s.offsets.start}-{s.offsets.until};" for s in slices]
    return "alone; " * (alone and bool(texts)) + "".join(texts) if len(texts) <= MOST_SLICES else ""


def forgiven(strikes: Iterable[Strike], work: OwnedRanges) -> tuple[Strike, ...]:
    """The strikes that are over: this member owns all their hashes, and has read them."""
    read = ((s, [p.hashes for p in work.get(s.tp, ()) if p.position >= s.offsets.until]) for s in strikes)
    return tuple(s for s, hashes in read if not minus(s.hashes, hashes))


def quarantined(
    work: OwnedRanges,
    ends: Mapping[TopicPartition, int],
    strikes: Iterable[Strike],
    offsets_of_a_record: OffsetsOfARecord,
    *,
    others: bool = False,
) -> tuple[OwnedRanges, tuple[TopicPartition, HashRange] | None]:
    """The work without parked hashes. While a struck lane has work: that lane alone, with one record, and its name.

    A trial lane is not cut, so that its next strike is for the same hashes. `others`: after a trial, all lanes without
    a strike, if they have unread offsets.
    """
    of_tp: dict[TopicPartition, list[Strike]] = {}
    for strike in strikes:
        of_tp.setdefault(strike.tp, []).append(strike)
    parts = {tp: tuple(_cut(tp, ranges, of_tp.get(tp, []))) for tp, ranges in work.items()}
    struck = next((x for of_partition in parts.values() for x in of_partition if _to_try(x, ends)), None)
    if struck and others and any(x[2] is None and x[1].backlog(ends[x[0]]) for of in parts.values() for x in of):
        return {tp: tuple(_held(p) if s else p for _, p, s in of) for tp, of in parts.items()}, None
    limited = {
        tp: tuple(_bounded(part, struck, offsets_of_a_record) for part in of_partition)
        for tp, of_partition in parts.items()
    }
    return limited, (struck[0], struck[1].hashes) if struck else None


_Part = tuple[TopicPartition, OwnedRange, Strike | None]


def _cut(tp: TopicPartition, ranges: Iterable[OwnedRange], strikes: list[Strike]) -> Iterator[_Part]:
    """The pieces, cut at both ends of each strike, each with its strike.

    A reset may move a position below a parked offset. Then a strike counts up to the parked offset.
    """
    bounds = {b for s in strikes for b in (s.hashes.lo, s.hashes.hi + 1)}
    for owned in ranges:
        for part in map(owned.within, owned.hashes.cut(bounds)):
            holds = [s for s in strikes if part.hashes.lo in s.hashes and part.position < s.offsets.until]
            parked = min((s for s in holds if s.parked), key=attrgetter("offset"), default=None)
            struck = max((s for s in holds if not s.parked), key=attrgetter("count"), default=None)
            yield tp, _held(part, parked.offset) if parked and struck else part, struck or parked


def _to_try(part: _Part, ends: Mapping[TopicPartition, int]) -> bool:
    tp, owned, strike = part
    return strike is not None and not strike.parked and owned.waits(ends[tp])


def _bounded(part: _Part, struck: _Part | None, offsets_of_a_record: OffsetsOfARecord) -> OwnedRange:
    tp, owned, strike = part
    if part == struck:
        most = owned.position + offsets_of_a_record((tp, owned.hashes))
        return owned._replace(ceiling=owned.reach(most))
    if struck is not None or strike is None:
        return _held(owned) if struck is not None else owned
    return _held(owned, strike.offset) if strike.parked else owned


def _held(owned: OwnedRange, at: int = 0) -> OwnedRange:
    """The piece with a ceiling at its position, or at a later offset `at`, as after a reset."""
    return owned._replace(ceiling=owned.reach(max(at, owned.position)))


def without_struck(
    ownership: Ownership, end: StreamOffset, strikes: Iterable[Strike], known: Iterable[Strike] = ()
) -> Ownership:
    """The readable parts of a batch that was planned earlier: without parked lanes, and without lanes struck twice.

    One strike changes nothing: a life that was killed in a batch replays all of it. A second strike may be of any lane
    that was begun. Each of these gets a trial, in a batch that was planned with the `known` strikes.
    """
    left_out = [s for s in strikes if s.parked or (s.count > 1 and s not in known)]
    if not left_out:
        return ownership
    return _less(ownership, struck_ranges(s for s in left_out if _reads(end, s)))


def left_out(ownership: Ownership, kept: Ownership) -> Ownership:
    """The parts of `ownership` that are not `kept`."""
    if kept is ownership:
        return {}
    return {tp: owned for tp, owned in _less(ownership, owned_ranges(kept)).items() if owned}


def _less(ownership: Ownership, gone: Ranges) -> Ownership:
    return {
        tp: tuple(Owned(h, o.epoch) for o in owned for h in minus(o.hashes, gone.get(tp, ())))
        for tp, owned in ownership.items()
    }


def _reads(end: StreamOffset, strike: Strike) -> bool:
    return any(
        lane.position <= strike.offset < lane.until and lane.hashes.intersection(strike.hashes)
        for lane in end.lanes.get(strike.tp, ())
    )
