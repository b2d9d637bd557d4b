"""Poison: a record that hangs its reader must not stop the group member by member (rule: struck-lane-apart). Pure.

    a member is lost with slices under way          each slice gets a strike, with its offsets
    one strike                                      a lane and a task of its own, up to the end of these offsets
    two strikes or more                             left out of a batch that was planned earlier; then a 32nd a batch
    struck again at about one record                parked: unread until an operator releases it
    its position has passed the offsets             the strike is removed

Other lanes never wait for a struck one. Redis counts strikes, and parks slices (`redis/lua/shared/strikes.lua`).
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from operator import attrgetter

from coordinator.assignment.assignment_text import Ranges
from coordinator.assignment.rebalance import minus, owned_ranges, union
from coordinator.errors import StateFormatError
from coordinator.plan.planning import OwnedRange, OwnedRanges
from coordinator.progress.ownership import Owned, Ownership
from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import StreamOffset
from coordinator.values.ranges import NUMBER, HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition

Lane = tuple[TopicPartition, HashRange]

OffsetsOfARecord = Callable[[Lane], int]
"""How many offsets hold about one record of a lane."""

Trials = Mapping[Lane, int]
"""The struck lanes of a batch, each with the number of offsets that hold about one record of it."""

MOST_SLICES = 64
"""The most slices of a report: more would fill Redis, and most of them are healthy."""

PARTS = 32
"""After a second strike, one batch reads this part of the struck offsets. So the next strike covers this part only."""

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

    def trial_end(self, position: int, one: int) -> int:
        """How far a trial reads from a position: to the end after the first strike, later a part of the struck offsets.

        What lies before these is read first. `one`: so many offsets hold about one record.
        """
        if self.count == 1:
            return self.offsets.until
        part = max(one, ceil(len(self.offsets) / PARTS))
        return self.offset if position < self.offset else min(self.offsets.until, position + part)

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
        return "parked" if self.parked else "on trial"

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


def working_text(slices: Iterable[Slice], trials: Trials) -> str:
    """The slices that a member's tasks have begun, in the form of Redis; above MOST_SLICES, only those on trial.

    `one`: it is about one record, on trial.
    """
    known = [(s, trial_of(s.lane, trials)) for s in slices]
    if len(known) > MOST_SLICES:
        known = [of for of in known if of[1] is not None][:MOST_SLICES]
    return "".join(
        f"{s.topic} {s.partition} {s.hashes} {s.offsets.start}-{s.offsets.until}"
        f"{' one' if trial is not None and len(s.offsets) <= trials[trial] else ''};"
        for s, trial in known
    )


def trial_of(lane: Lane, trials: Collection[Lane]) -> Lane | None:
    """The lane on trial that holds this one, or this key."""
    return next((x for x in trials if x[0] == lane[0] and x[1].intersection(lane[1]) == lane[1]), None)


def singly(slices: Iterable[Slice], trials: Trials) -> bool:
    """Whether a task with these slices takes and reports records one by one: of one key, or of about one record."""
    if not trials:
        return False
    tried = ((s, trials[of]) for s in slices if (of := trial_of(s.lane, trials)))
    return any(s.hashes.lo == s.hashes.hi or len(s.offsets) <= one for s, one in tried)


def forgiven(strikes: Iterable[Strike], work: OwnedRanges) -> tuple[Strike, ...]:
    """The strikes that are over: this member owns all their hashes, and has read them."""
    read = ((s, [p.hashes for p in work.get(s.tp, ()) if p.position >= s.offsets.until]) for s in strikes)
    return tuple(s for s, hashes in read if not minus(s.hashes, hashes))


def tried(
    work: OwnedRanges, strikes: Collection[Strike], offsets_of_a_record: OffsetsOfARecord
) -> tuple[OwnedRanges, Trials]:
    """The work without parked hashes, and with struck hashes as lanes of their own; these are the trials.

    A trial ends with the struck offsets at the latest. So its next strike is for a part of the same hashes and offsets.
    """
    limited, trials = dict[TopicPartition, tuple[OwnedRange, ...]](), dict[Lane, int]()
    for tp, ranges in work.items():
        pieces = []
        for piece, struck in _cut(ranges, [s for s in strikes if s.tp == tp]):
            if struck:
                one = trials[tp, piece.hashes] = offsets_of_a_record((tp, piece.hashes))
                piece = _held(piece, min(s.trial_end(piece.position, one) for s in struck))  # noqa: PLW2901
            pieces.append(piece)
        limited[tp] = tuple(pieces)
    return limited, trials


def _cut(ranges: Iterable[OwnedRange], strikes: list[Strike]) -> Iterator[tuple[OwnedRange, list[Strike]]]:
    """The pieces, cut at both ends of each strike, each with its strikes; parked ones are held where they are parked.

    A reset may move a position below a parked offset. Then a strike counts up to the parked offset.
    """
    bounds = {b for s in strikes for b in (s.hashes.lo, s.hashes.hi + 1)}
    for owned in ranges:
        for piece in map(owned.within, owned.hashes.cut(bounds)):
            holds = [s for s in strikes if piece.hashes.lo in s.hashes and piece.position < s.offsets.until]
            parked = min((s for s in holds if s.parked), key=attrgetter("offset"), default=None)
            yield _held(piece, parked.offset) if parked else piece, [s for s in holds if not s.parked]


def _held(owned: OwnedRange, at: int = 0) -> OwnedRange:
    """The piece with a ceiling at its position, or at a later offset `at`, as after a reset."""
    return owned._replace(ceiling=owned.reach(max(at, owned.position)))


def without_struck(
    ownership: Ownership, end: StreamOffset, strikes: Iterable[Strike], known: Iterable[Strike]
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
